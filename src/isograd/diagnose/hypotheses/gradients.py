"""Gradients that are stopped, scaled or replaced, while the results stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd import tree
from isograd.diagnose.flow import Flow, flow_of
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
    operands,
)
from isograd.frameworks.base import FunctionSite, Operand

#: Of a unit with more functions than this, only what its modules get and yield is tried.
_MOST_FUNCTIONS = 150
#: Calls of one module that are looked at one by one.
_MOST_CALLS_APART = 4
_FACTORS = (2.0, 0.5, -1.0, 0.1, 10.0, 0.25, 4.0, 0.0)
#: Functions whose gradient people replace, each with what stands in for it.
_ROUGH = ("round", "sign", "floor", "ceil", "trunc", "clamp", "hardtanh", "relu", "heaviside")
_SMOOTH = ("gelu", "silu", "selu", "elu", "softplus", "mish", "tanh", "sigmoid", "hardswish")
_FLOATING = ("float", "bfloat")


def _is_floating(value: Any) -> bool:
    return isinstance(value, Operand) and value.dtype.startswith(_FLOATING)


def _tensors(site: FunctionSite) -> Iterator[tuple[str, int | None, Operand]]:
    """The floating tensors that a site gets: argument, position within a tuple, operand."""
    for name, value in site.arguments.items():
        if _is_floating(value):
            yield name, None, value
        elif isinstance(value, tuple):
            for position, part in enumerate(value):
                if _is_floating(part):
                    yield name, position, part


def _stops(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The ways on which a gradient may go at this place, each of them once.

    A place means all its calls: what a cell gets in the second round of a loop counts.
    """
    flow = flow_of(context)
    calls = flow.calls_at(site.place)
    inside = site.place.function == "module" and flow.is_computed(site)
    if not inside:
        if flow.instructions > _MOST_FUNCTIONS and site.place.function != "module":
            return
        for name, position in dict.fromkeys(w for call in calls for w in _ways_in(flow, call)):
            yield _way(name, position)
    whole = site.event + 1 == len(flow.sites)
    if not inside or whole:
        for position in _ways_out(flow, site):
            yield _way("", position)
    if site.place.function == "module" and 1 < len(calls) <= _MOST_CALLS_APART:
        for number, call in enumerate(calls):
            yield from (_way("", p, number) for p in _ways_out(flow, call))
            if not inside:
                yield from (_way(*way, number) for way in dict.fromkeys(_ways_in(flow, call)))


def _way(name: str, position: int | None, number: int | None = None) -> dict[str, Any]:
    at = "" if number is None else f" in its call {number + 1}"
    return {"argument": name, "position": position, "call": number, "at": at}


def _ways_in(flow: Flow, site: FunctionSite) -> Iterator[tuple[str, int | None]]:
    """The operands through which a gradient leaves a call, and tuples of them as a whole."""
    parts: dict[str, int] = {}
    for name, position, operand in _tensors(site):
        if operand.source == "other":
            continue
        maker = flow.maker(operand)
        if maker is not None and _hands_on_all(flow, maker, operand):
            continue  # stopping what its maker gets is the same
        yield name, position
        if position is not None:
            parts[name] = parts.get(name, 0) + 1
    yield from ((name, None) for name, count in parts.items() if count > 1)


def _ways_out(flow: Flow, site: FunctionSite) -> Iterator[int | None]:
    """The results into which a gradient comes, where no stop of an operand is the same."""
    floating = [i for i, o in enumerate(site.outputs) if o.dtype.startswith(_FLOATING)]
    if site.place.function == "module":
        yield from [None] if floating else []
        yield from floating if len(floating) > 1 else []
    elif len(floating) == 1 and len(list(_tensors(site))) > 1:
        if len(flow.uses.get(site.event, ())) > 1:
            yield None


def _hands_on_all(flow: Flow, maker: FunctionSite, operand: Operand) -> bool:
    """Whether an operand has one use and one floating origin: the stop before it is the same."""
    if maker.place.function == "module" or len(maker.outputs) != 1:
        return False
    origins = [o for o in operands(maker) if _is_floating(o)]
    users = list(flow.uses.get(maker.event, ()))
    known = all(o.source != "other" for o in origins)
    return len(origins) == 1 and len(users) == 1 and known


def _passing(call: Call, values: Values, factor: float) -> Any:
    def scaled(tensor: Any) -> Any:
        import torch

        if isinstance(tensor, (tuple, list)):
            return type(tensor)(scaled(part) for part in tensor)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            return tensor
        stopped = tensor.detach()
        # exactly the same value, whatever the factor is
        return stopped if factor == 0.0 else stopped + factor * (tensor - stopped)

    name, position, number = values["argument"], values["position"], values["call"]
    if number is not None and number != call.number:
        return call.run()
    if not name:
        return _at_slot(call.run(), position, scaled)
    given = call[name]
    if position is None:
        return call.run(**{name: scaled(given)})
    if not isinstance(given, (tuple, list)):
        return call.run()  # a state that is None before the first round
    parts = list(given)
    parts[position] = scaled(parts[position])
    return call.run(**{name: tuple(parts)})


def _at_slot(result: Any, position: int | None, scaled: Callable[[Any], Any]) -> Any:
    """A result with one of its tensors changed, or all; tensors count as in `FunctionSite`."""
    import torch

    tensors, shape = tree.flatten(result, lambda value: isinstance(value, torch.Tensor))
    changed = [scaled(t) if position in (None, i) else t for i, t in enumerate(tensors)]
    return tree.unflatten(shape, changed)


def _replaced(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = site.arguments.get("input")
    if not _is_floating(operand):
        return
    function = site.place.function
    kinds = ["identity"] if function in _ROUGH else []
    kinds += {
        "relu": ["one at zero", "leaky"],
        "gelu": ["tanh", "quick"],
        "selu": ["elu"],
        "clamp": ["identity"],
        "round": ["clipped"],
        "sign": ["clipped", "tanh"],
    }.get(function, [])
    for kind in dict.fromkeys(kinds):
        yield {"gradient": kind}


def _with_gradient(call: Call, values: Values) -> Any:
    import torch
    import torch.nn.functional as F

    x = call["input"]
    stands_in: dict[str, Any] = {
        "identity": lambda: x,
        "one at zero": lambda: torch.where(x >= 0, x, torch.zeros_like(x)),
        "leaky": lambda: F.leaky_relu(x, 0.01),
        "tanh": lambda: F.gelu(x, approximate="tanh") if call.function == "gelu" else x.tanh(),
        "quick": lambda: x * torch.sigmoid(1.702 * x),
        "elu": lambda: F.elu(x),
        "clipped": lambda: x.clamp(-1, 1),
    }
    other: Any = stands_in[values["gradient"]]
    other = other()
    result = call.run()
    return result.detach() + (other - other.detach())


def _statistics(site: FunctionSite, context: Context) -> Iterator[Values]:
    training = site.arguments.get("training", True)
    if _is_floating(site.arguments.get("input")) and training:
        for which in ("mean and variance", "variance", "mean"):
            yield {"stopped": which}


def _constant_statistics(call: Call, values: Values) -> Any:
    """The normalisation with its statistics as constants: the same value, another gradient."""
    x = call["input"]
    if call.function == "layer_norm":
        axes = tuple(range(x.ndim - len(tuple(call["normalized_shape"])), x.ndim))
        shape: tuple[int, ...] = tuple(call["normalized_shape"])
    elif call.function == "batch_norm":
        axes = (0, *range(2, x.ndim))
        shape = (1, -1, *([1] * (x.ndim - 2)))
    else:
        groups = call["num_groups"] if call.function == "group_norm" else x.shape[1]
        apart = x.reshape(x.shape[0], groups, -1)
        return _by_statistics(apart, (-1,), call, values, x.shape, (1, -1, *([1] * (x.ndim - 2))))
    return _by_statistics(x, axes, call, values, x.shape, shape)


def _by_statistics(
    x: Any, axes: tuple[int, ...], call: Call, values: Values, result: Any, shape: Any
) -> Any:
    import torch

    call.run()  # running statistics move as they would
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, unbiased=False, keepdim=True)
    if "mean" in values["stopped"]:
        mean = mean.detach()
    if "variance" in values["stopped"]:
        variance = variance.detach()
    y = ((x - mean) * torch.rsqrt(variance + call["eps"])).reshape(result)
    weight, bias = call.arguments.get("weight"), call.arguments.get("bias")
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _place(values: Values) -> str:
    name, position = values["argument"], values["position"]
    part = "" if position is None else f" {position}" if not name else f", part {position}"
    kind = "input" if name.isdigit() else "argument"
    return f"{kind} {name}{part}" if name else f"result{part}"


_LINEAR = {"f": ("nn.Linear(8, 8)", "nn.Dense(8, 8)"), "g": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")}
_X = ((4, 8),)

HYPOTHESES = (
    FunctionHypothesis(
        "gradient_stopped",
        "gradient.stopped",
        ("*",),
        _stops,
        lambda call, values: _passing(call, values, 0.0),
        "no gradient flows through the {port} of {function}{at}",
        backward=True,
        rank=2,
        special_of=("gradient.scale",),
        port_value=_place,
        examples=(
            Example(
                "x + self.g(torch.relu(self.f(x)))",
                "x + self.g(ops.stop_gradient(ops.relu(self.f(x))))",
                _X,
                _LINEAR,
            ),
            Example(
                "h = self.f(x)\nreturn torch.softmax(h, -1) * h.tanh()",
                "h = self.f(x)\nreturn ops.softmax(h, -1) * ops.tanh(ops.stop_gradient(h))",
                _X,
                _LINEAR,
            ),
        ),
    ),
    FunctionHypothesis(
        "gradient_scale",
        "gradient.scale",
        ("*",),
        _stops,
        lambda call, values: _passing(call, values, values["factor"]),
        "the gradient through an operand of {function}{at} is multiplied by {port}",
        backward=True,
        numbers=(Number("factor", _FACTORS, Scale.LINEAR),),
        rank=6,
        reference_value=lambda site, context: 1.0,
        examples=(
            Example(
                "x + self.g(self.f(x).tanh())",
                "h = ops.tanh(self.f(x))\nreturn x + self.g(-1.0 * h + 2.0 * ops.stop_gradient(h))",
                _X,
                _LINEAR,
                port_value=-1.0,
            ),
            Example(
                "x + self.g(self.f(x).tanh())",
                "h = self.f(x)\nreturn x + self.g(ops.tanh(0.3 * h + 0.7 * ops.stop_gradient(h)))",
                _X,
                _LINEAR,
                port_value=0.3,
            ),
        ),
    ),
    FunctionHypothesis(
        "gradient_custom",
        "gradient.custom",
        (*_ROUGH, *_SMOOTH),
        _replaced,
        _with_gradient,
        "the gradient of {function} is that of another function: {port}",
        backward=True,
        rank=3,
        port_value=lambda values: values["gradient"],
        examples=(
            Example(
                "torch.round(x * 3) * x",
                "h = x * 3\nreturn (h + ops.stop_gradient(ops.round(h) - h)) * x",
                _X,
                port_value="identity",
                proved=False,
            ),
            Example(
                "F.gelu(self.f(x))",
                "h = self.f(x)\nt = ops.gelu(h, approximate='tanh')\n"
                "return t + ops.stop_gradient(ops.gelu(h) - t)",
                _X,
                {"f": _LINEAR["f"]},
                port_value="tanh",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "gradient_statistics",
        "gradient.stopped",
        ("layer_norm", "batch_norm", "group_norm", "instance_norm"),
        _statistics,
        _constant_statistics,
        "the {port} of {function} get no gradient",
        backward=True,
        rank=3,
        port_value=lambda values: values["stopped"],
        examples=(
            Example(
                "F.layer_norm(x, (8,))",
                "m = ops.stop_gradient(x.mean(-1, keep_dims=True))\n"
                "v = ops.stop_gradient(((x - m) ** 2).mean(-1, keep_dims=True))\n"
                "return (x - m) / ops.sqrt(v + 1e-5)",
                _X,
                port_value="mean and variance",
                proved=False,
            ),
        ),
    ),
)
