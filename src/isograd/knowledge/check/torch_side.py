"""An example's torch code, executed: result, gradients and inputs as plain values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.knowledge.check.comparing import Array
from isograd.knowledge.check.drawing import output_weights


def compiled(code: str, names: list[str]) -> ast.Module:
    """`def run(names): code`, a lone expression returned."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.Return(last.value)
    function = ast.parse(f"def run({', '.join(names)}): pass")
    assert isinstance(function.body[0], ast.FunctionDef)
    function.body[0].body = tree.body
    return ast.fix_missing_locations(function)


def function_of(code: str, names: list[str], space: dict[str, Any]) -> Callable[..., Any]:
    """The example as a function of its inputs."""
    exec(compile(compiled(code, names), "<example>", "exec"), space)  # noqa: S102
    found: Callable[..., Any] = space["run"]
    return found


def split_module(code: str) -> tuple[str, str] | None:
    """`nn.Linear(2, 3)(x)` as the construction and the call's arguments.

    Statements before it (a class, a name) belong to the construction.
    """
    try:
        *before, last = ast.parse(code).body
    except (SyntaxError, ValueError):
        return None
    node = last.value if isinstance(last, (ast.Expr, ast.Return)) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        arguments = ast.unparse(ast.Call(ast.Name("call"), node.args, node.keywords))
        return ast.unparse(ast.Module([*before, ast.Expr(node.func)], [])), arguments
    return None


def space() -> dict[str, Any]:
    """The names that torch code of examples may use."""
    import einops.layers.torch
    import torch

    names: dict[str, Any] = {"torch": torch, "einops": einops, "np": np}
    return names


def plain(value: Any) -> Any:
    """Torch's values as arrays and Python values."""
    import torch

    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).rpartition(".")[2]
        kept = value.detach()
        kept = kept.float() if value.dtype == torch.bfloat16 else kept
        return Array(np.array(kept.resolve_conj().resolve_neg().numpy(force=True)), dtype)
    if isinstance(value, torch.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return Array(value, str(value.dtype))
    return value


def floats(value: Any) -> list[Any]:
    """The tensors of a result that can have a gradient, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in floats(part)]
    return []


def is_float(array: Any) -> bool:
    """Whether an input takes part in the gradient."""
    return isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64)


def tensor_of(value: Any, gradient: bool) -> Any:
    """An input as torch's code sees it."""
    import torch

    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    tensor = torch.from_numpy(np.array(value))
    return tensor.requires_grad_() if gradient and is_float(value) else tensor


def run_call(code: str, inputs: dict[str, Any], seed: int, gradient: bool) -> dict[str, Any]:
    """Execute an example: result, gradients of float inputs (None: has none), inputs after."""
    import torch

    torch.manual_seed(seed)
    function = function_of(code, list(inputs), space())
    with torch.enable_grad():
        given = {name: tensor_of(value, gradient) for name, value in inputs.items()}
        result = function(**given)
        leaves = [given[name] for name, value in inputs.items() if is_float(value)]
        gradients = _gradients(result, leaves, seed) if gradient else None
    return {"result": plain(result), "gradients": gradients, "inputs": plain(given)}


def _gradients(result: Any, leaves: list[Any], seed: int) -> Any:
    """Of the weighted sum of all float outputs; None where no output depends on a leaf."""
    import torch

    parts = [
        (output.double() * torch.from_numpy(output_weights(output.shape, number, seed))).sum()
        for number, output in enumerate(floats(result))
        if output.requires_grad
    ]
    if not parts or not leaves:
        return None
    found: Any = torch.autograd.grad(torch.stack(parts).sum(), leaves, allow_unused=True)
    return [
        plain(torch.zeros_like(leaf) if part is None else part)
        for leaf, part in zip(leaves, found, strict=True)
    ]


def build_module(code: str, seed: int) -> Any:
    """A module from its construction; its values do not repeat (no zeros, no ones)."""
    import torch

    torch.manual_seed(seed)
    module = function_of(code, [], space())()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.1 * noise.to(parameter.dtype))
    return module


def module_state(module: Any) -> tuple[dict[str, Any], list[Any]]:
    """Values of the parameters by name, and of the buffers that hold floats, in order."""
    parameters = {name: p.detach().numpy().copy() for name, p in module.named_parameters()}
    buffers = [b.numpy().copy() for b in module.buffers() if b.is_floating_point()]
    return parameters, buffers


def run_module(
    module: Any, call: str, inputs: dict[str, Any], seed: int, training: bool, gradient: bool
) -> dict[str, Any]:
    """Call a module: result, gradients of inputs and parameters, buffers after."""
    module.train(training)
    for parameter in module.parameters():
        parameter.grad = None
    names = {"call": module, **space()}
    function = function_of(call, list(inputs), names)
    given = {name: tensor_of(value, gradient) for name, value in inputs.items()}
    result = function(**given)
    leaves = [given[name] for name, value in inputs.items() if is_float(value)]
    leaves += list(module.parameters())
    gradients = _gradients(result, leaves, seed) if gradient else None
    state = [plain(b) for b in module.buffers() if b.is_floating_point()]
    return {"result": plain(result), "gradients": gradients, "buffers": state}


def _parameters(seed: int) -> list[Any]:
    import torch

    generator = np.random.default_rng(seed)
    shapes = [(3, 4), (5,)]
    return [
        torch.nn.Parameter(torch.from_numpy(generator.standard_normal(n).astype(np.float32)))
        for n in shapes
    ]


def run_optimizer(code: str, seed: int, steps: int) -> Any:
    """Parameters after each of some steps towards the least of a bowl and a drawn slope."""
    import torch

    params = _parameters(seed)
    optimizer = function_of(code, ["params"], space())(params)
    generator = np.random.default_rng(seed + 1)
    found = []
    for _ in range(steps):
        slopes = [
            torch.from_numpy(generator.standard_normal(tuple(part.shape)).astype(np.float32))
            for part in params
        ]

        def closure(slopes: Any = slopes) -> Any:
            total = torch.zeros(())
            for parameter, slope in zip(params, slopes, strict=True):
                value = parameter.detach()
                parameter.grad = slope + 0.5 * value
                total = total + (slope * value + 0.25 * value * value).sum()
            return total

        optimizer.step(closure)
        found.append([plain(parameter) for parameter in params])
    return found


def run_scheduler(code: str, steps: int) -> Any:
    """The learning rates of some steps of a schedule over SGD with rate 0.1."""
    import torch

    optimizer = torch.optim.SGD(_parameters(0), lr=0.1, momentum=0.9)
    scheduler = function_of(code, ["optimizer"], space())(optimizer)
    found = [float(optimizer.param_groups[0]["lr"])]
    for step in range(steps):
        optimizer.step()
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            scheduler.step(1.0 if step else 0.5)
        else:
            scheduler.step()
        found.append(float(optimizer.param_groups[0]["lr"]))
    return found
