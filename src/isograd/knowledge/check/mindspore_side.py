"""An example's MindSpore code, executed: result, gradients and inputs as plain values."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

import numpy as np

from isograd.knowledge.check.comparing import Array
from isograd.knowledge.check.drawing import output_weights
from isograd.knowledge.check.torch_side import function_of, is_float
from isograd.knowledge.rewrite import PACKAGES


@lru_cache(maxsize=1)
def _packages() -> dict[str, Any]:
    found = {short: _package(full) for short, full in PACKAGES.items()}
    return {short: package for short, package in found.items() if package is not None}


def _package(name: str) -> Any:
    """A package, or None: a template that needs it then fails by name."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def space() -> dict[str, Any]:
    """The names that templates and ports may use."""
    return dict(_packages())


def prepare(device: str) -> None:
    """PyNative mode on a device, errors where they arise."""
    import mindspore

    mindspore.set_device(device)
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, pynative_synchronize=True)


def plain(value: Any) -> Any:
    """MindSpore's values as arrays and Python values."""
    import mindspore

    if isinstance(value, mindspore.Tensor):
        dtype = str(value.dtype).lower().replace("bool_", "bool")
        kept = value.astype(mindspore.float32) if value.dtype == mindspore.bfloat16 else value
        return Array(np.array(kept.asnumpy()), dtype)
    if type(value).__module__.startswith("mindspore") and hasattr(value, "__eq__"):
        text = str(value)
        if text.lower().startswith(("float", "int", "uint", "bool", "bfloat", "complex")):
            return text.lower().replace("bool_", "bool")
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return Array(value, str(value.dtype))
    return value


def floats(value: Any) -> list[Any]:
    """The tensors of a result that can have a gradient, in order."""
    import mindspore

    if isinstance(value, mindspore.Tensor):
        kinds = (mindspore.float16, mindspore.float32, mindspore.float64, mindspore.bfloat16)
        return [value] if value.dtype in kinds else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in floats(part)]
    return []


def tensor_of(value: Any) -> Any:
    """An input as the port's code sees it."""
    import mindspore

    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    return mindspore.Tensor(np.array(value))


def run_call(code: str, inputs: dict[str, Any], seed: int, gradient: bool) -> dict[str, Any]:
    """Execute a port: result, gradients of float inputs where asked for, inputs after."""
    import mindspore

    mindspore.set_seed(seed)
    function = function_of(code, list(inputs), space())
    given = {name: tensor_of(value) for name, value in inputs.items()}
    result = plain(function(**given))
    after = plain(given)
    gradients = None
    if gradient:
        leaves = [name for name, value in inputs.items() if is_float(value)]
        fresh = {name: tensor_of(value) for name, value in inputs.items()}
        gradients = _gradients(function, fresh, leaves, (), seed)
    return {"result": result, "gradients": gradients, "inputs": after}


def _gradients(
    function: Any, given: dict[str, Any], leaves: list[str], weights: Any, seed: int
) -> Any:
    import mindspore
    from mindspore import ops
    from mindspore.common.api import _pynative_executor

    def total(*values: Any) -> Any:
        result = function(**{**given, **dict(zip(leaves, values, strict=True))})
        found = mindspore.Tensor(0.0, mindspore.float32)
        for number, output in enumerate(floats(result)):
            factor = mindspore.Tensor(output_weights(output.shape, number, seed), output.dtype)
            found = found + ops.cast((output * factor).sum(), mindspore.float32)
        return found

    values = tuple(given[name] for name in leaves)
    positions = tuple(range(len(values))) if values else None
    try:
        found = mindspore.grad(total, positions, weights or None)(*values)
    except BaseException:
        # Else a half-built graph is left behind, and later, innocent examples fail.
        _pynative_executor.clear_res()
        raise
    by_input, by_weight = _both_parts(found, bool(values), bool(weights))
    result = [_whole(part, value) for part, value in zip(by_input, values, strict=True)]
    return result + [_whole(part, value) for part, value in zip(by_weight, weights, strict=True)]


def _both_parts(found: Any, inputs: bool, weights: bool) -> tuple[Any, Any]:
    def many(part: Any) -> tuple[Any, ...]:
        return tuple(part) if isinstance(part, (tuple, list)) else (part,)

    if inputs and weights:
        return many(found[0]), many(found[1])
    return (many(found), ()) if inputs else ((), many(found))


def _whole(part: Any, value: Any) -> Any:
    return plain(part if part is not None else value.asnumpy() * 0)


def build_module(code: str, parameters: dict[str, Any], buffers: list[Any]) -> Any:
    """A cell from its construction, with a torch module's values by name, or else in order.

    Raises ValueError where parameters or buffers do not correspond in order and shape.
    """
    import mindspore

    cell = function_of(code, [], space())()
    if not isinstance(cell, mindspore.nn.Cell):
        if parameters or buffers:
            raise ValueError(f"{len(parameters)} parameters in torch, none in MindSpore")
        return cell
    own = [p for p in cell.get_parameters() if p.requires_grad]
    by_name = {p.name.rpartition("rnn.")[2]: p for p in own}
    by_path = {name: p for name, p in cell.parameters_and_names() if p.requires_grad}
    for named in (by_path, by_name):
        if set(named) == set(parameters):
            own = [named[name] for name in parameters]
    _ORDER[id(cell)] = own
    pairs = (("parameters", own, list(parameters.values())), ("buffers", _rest(cell), buffers))
    for kind, mine, theirs in pairs:
        first, second = ([tuple(v.shape) for v in values] for values in (theirs, mine))
        if kind == "buffers" and not first:
            continue
        if [int(np.prod(n)) for n in first] != [int(np.prod(n)) for n in second]:
            raise ValueError(f"{kind} {first} in torch, {second} in MindSpore")
        for target, value in zip(mine, theirs, strict=True):
            _put(target, value.reshape(target.shape))
    return cell


def _put(target: Any, value: Any) -> None:
    import mindspore

    tensor = mindspore.Tensor(np.array(value), target.dtype)
    if isinstance(target, mindspore.Parameter):
        target.set_data(tensor)
    else:
        target.copy_(tensor)


#: The learnt parameters of the cells that were built, in torch's order.
_ORDER: dict[int, list[Any]] = {}


def _learnt(cell: Any) -> list[Any]:
    return _ORDER.get(id(cell), [])


def _rest(cell: Any) -> list[Any]:
    if not hasattr(cell, "get_parameters"):
        return []
    # A norm without affine part keeps its gamma and beta as constants.
    still = [p for p in cell.get_parameters() if not p.requires_grad]
    kept = [p for p in still if not p.name.endswith(("gamma", "beta", "weight", "bias"))]
    plain = [b for b in cell.buffers() if type(b).__name__ != "Parameter"]
    return floats(kept + plain)


def build_state(cell: Any) -> list[Any]:
    """Copies of the buffers' values."""
    return [buffer.asnumpy().copy() for buffer in _rest(cell)]


def restore_state(cell: Any, values: list[Any]) -> None:
    """Put kept values back into the buffers."""
    for buffer, value in zip(_rest(cell), values, strict=True):
        _put(buffer, value)


def run_module(
    cell: Any, call: str, inputs: dict[str, Any], seed: int, training: bool, gradient: bool
) -> dict[str, Any]:
    """Call a cell: result, gradients of inputs and parameters, buffers after."""
    import mindspore

    mindspore.set_seed(seed)
    if hasattr(cell, "set_train"):
        cell.set_train(training)
    function = function_of(call, list(inputs), {"call": cell, **space()})
    given = {name: tensor_of(value) for name, value in inputs.items()}
    result = plain(function(**given))
    state = [plain(buffer) for buffer in _rest(cell)]
    gradients = None
    if gradient:
        leaves = [name for name, value in inputs.items() if is_float(value)]
        weights = mindspore.ParameterTuple(_learnt(cell)) if _learnt(cell) else ()
        gradients = _gradients(function, given, leaves, weights, seed)
    return {"result": result, "gradients": gradients, "buffers": state}


def _parameters(seed: int) -> list[Any]:
    import mindspore

    generator = np.random.default_rng(seed)
    shapes = [(3, 4), (5,)]
    return [
        mindspore.Parameter(
            mindspore.Tensor(generator.standard_normal(shape).astype(np.float32)),
            name=f"parameter{number}",
        )
        for number, shape in enumerate(shapes)
    ]


def run_optimizer(code: str, seed: int, steps: int) -> Any:
    """Parameters after each of some steps towards the least of a bowl and a drawn slope."""
    import mindspore
    from mindspore import ops

    params = _parameters(seed)
    optimizer = function_of(code, ["params"], space())(params)
    generator = np.random.default_rng(seed + 1)
    found = []
    for _ in range(steps):
        slopes = [
            mindspore.Tensor(generator.standard_normal(tuple(part.shape)).astype(np.float32))
            for part in params
        ]

        def closure(slopes: Any = slopes) -> Any:
            total = mindspore.Tensor(0.0)
            for parameter, slope in zip(params, slopes, strict=True):
                value = ops.stop_gradient(parameter)
                parameter.grad = slope + 0.5 * value
                total = total + (slope * value + 0.25 * value * value).sum()
            return total

        optimizer.step(closure)
        found.append([plain(parameter) for parameter in params])
    return found


def run_scheduler(code: str, steps: int) -> Any:
    """The learning rates of some steps of a schedule over SGD with rate 0.1."""
    from isograd.runtime import SGD

    optimizer = SGD(_parameters(0), lr=0.1, momentum=0.9)
    scheduler = function_of(code, ["optimizer"], space())(optimizer)
    found = [float(optimizer.param_groups[0]["lr"])]
    for step in range(steps):
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            scheduler.step(1.0 if step else 0.5)
        else:
            scheduler.step()
        found.append(float(optimizer.param_groups[0]["lr"]))
    return found
