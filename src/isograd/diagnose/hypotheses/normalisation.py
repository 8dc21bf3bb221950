"""Normalisations of torch: eps, the variance's divisor, scale and shift, axes and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import rank_of
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    Hypothesis,
    Numeric,
    Values,
    other_argument,
    other_number,
)
from isograd.frameworks.base import FunctionSite, Operand

EPS = Numeric("eps", (1e-5, 1e-3, 1e-6, 1e-7, 1e-8, 1e-12, 1e-4, 1e-2, 0.1))


def standardised(x: Any, axes: list[int], eps: float, unbiased: bool, outside: bool) -> Any:
    """The tensor minus its mean, over its deviation; outside: eps is added to the deviation."""
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, unbiased=unbiased, keepdim=True)
    if outside:
        return (x - mean) / (variance.sqrt() + eps)
    return (x - mean) * (variance + eps).rsqrt()


def _affine(result: Any, call: Call, axis: int | None) -> Any:
    """The call's own weight and bias, along one axis or (None) the last ones."""
    for name in ("weight", "bias"):
        own = call.arguments.get(name)
        if own is None:
            continue
        if axis is not None:
            own = own.reshape([-1 if d == axis else 1 for d in range(result.dim())])
        result = result * own if name == "weight" else result + own
    return result


def _layer_axes(call: Call) -> list[int]:
    return list(range(-len(tuple(call["normalized_shape"])), 0))


def _eps(call: Call) -> float:
    return float(call.arguments.get("eps", 1e-5))


def _eps_hypothesis(function: str, words: str, *examples: Example) -> Hypothesis:
    return other_number(
        f"{function}_eps",
        f"{function}.eps",
        (function,),
        "eps",
        EPS,
        words + " with eps {port} instead of {reference}",
        examples=examples,
    )


def _rms_reference(site: FunctionSite, context: Context) -> float:
    eps = site.arguments.get("eps")
    return 2.0**-23 if eps is None else float(eps)


def _propose_outside(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"form": "outside the root"}


def _outside(call: Call, values: Values) -> Any:
    return _affine(
        standardised(call["input"], _layer_axes(call), _eps(call), False, True), call, None
    )


def _propose_unbiased(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"outside": False}
    yield {"outside": True}


def _unbiased_layer(call: Call, values: Values) -> Any:
    axes = _layer_axes(call)
    return _affine(
        standardised(call["input"], axes, _eps(call), True, values["outside"]), call, None
    )


def _propose_unbiased_batch(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.arguments.get("training"):
        yield {}


def _unbiased_batch(call: Call, values: Values) -> Any:
    x = call["input"]
    call.run()  # the running statistics move all the same
    axes = [0, *range(2, x.dim())]
    return _affine(standardised(x, axes, _eps(call), True, False), call, 1)


def _propose_axes(site: FunctionSite, context: Context) -> Iterator[Values]:
    rank = rank_of(site.arguments.get("input"))
    own = site.arguments.get("normalized_shape")
    count = len(own) if isinstance(own, tuple) else 1
    for last in range(1, rank):
        if last != count:
            yield {"axes": tuple(range(-last, 0))}
    for axis in range(1, rank - 1):
        yield {"axes": (axis - rank,)}


def _other_axes(call: Call, values: Values) -> Any:
    x = standardised(call["input"], list(values["axes"]), _eps(call), False, False)
    return _affine(x, call, None)


def _normalized_axes(site: FunctionSite, context: Context) -> str:
    own = site.arguments.get("normalized_shape")
    return str(tuple(range(-len(own) if isinstance(own, tuple) else -1, 0)))


def _divisors(own: Any, site: FunctionSite) -> Iterator[int]:
    operand = site.arguments.get("input")
    if isinstance(operand, Operand):
        channels = operand.shape[1]
        yield from (g for g in range(1, channels + 1) if channels % g == 0)


def _without(function: str, argument: str, words: str, example: Example) -> Hypothesis:
    """The scale or the shift is not applied."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        if isinstance(site.arguments.get(argument), Operand):
            yield {argument: None}

    def change(call: Call, values: Values) -> Any:
        return call.run(**{argument: None})

    return Hypothesis(
        f"{function}_{argument}",
        f"{function}.{argument}",
        (function,),
        propose,
        change,
        f"{words} without its {argument}",
        reference_value=lambda site, context: "applied",
        port_value=lambda values: "missing",
        rank=3,
        examples=(example,),
    )


_BY_HAND = "d = x - x.mean(axis=-1, keep_dims=True)\nv = (d * d).mean(axis=-1, keep_dims=True)\n"
_BATCH_BY_HAND = (
    "m = x.mean(axis=(0, 2, 3), keep_dims=True)\nv = ((x - m) ** 2).mean(axis=(0, 2, 3), "
    "keep_dims=True)\n"
)
_TWO_VECTORS = ((4, 6, 8), (8,), (8,))
_CHANNELS = ((4, 6, 5, 5), (6,), (6,))
_TORCH_BATCH = "F.batch_norm(x, None, None, y, z, True)"

HYPOTHESES = (
    _eps_hypothesis(
        "batch_norm",
        "batch normalisation",
        Example(
            "self.norm(x)",
            "self.norm(x)",
            ((4, 6, 5, 5),),
            {"norm": ("nn.BatchNorm2d(6)", "nn.BatchNorm2d(6, eps=1e-3)")},
            port_value=1e-3,
        ),
    ),
    _eps_hypothesis(
        "layer_norm",
        "layer normalisation",
        Example(
            "self.norm(x)",
            "self.norm(x)",
            modules={"norm": ("nn.LayerNorm(8)", "nn.LayerNorm((8,), epsilon=1e-3)")},
            port_value=1e-3,
        ),
        Example(
            "F.layer_norm(torch.relu(x), (8,), y, z)",
            "x = ops.relu(x)\n" + _BY_HAND + "return d / ops.sqrt(v + 3e-4) * y + z",
            _TWO_VECTORS,
            port_value=3e-4,
        ),
    ),
    _eps_hypothesis(
        "group_norm",
        "group normalisation",
        Example(
            "self.norm(x)",
            "self.norm(x)",
            ((4, 6, 5, 5),),
            {"norm": ("nn.GroupNorm(3, 6)", "nn.GroupNorm(3, 6, eps=1e-3)")},
            port_value=1e-3,
        ),
    ),
    _eps_hypothesis(
        "instance_norm",
        "instance normalisation",
        Example(
            "F.instance_norm(x)",
            "m = x.mean(axis=(2, 3), keep_dims=True)\n"
            "v = ((x - m) ** 2).mean(axis=(2, 3), keep_dims=True)\n"
            "return (x - m) / ops.sqrt(v + 2e-3)",
            ((4, 6, 5, 5),),
            port_value=2e-3,
        ),
    ),
    Hypothesis(
        "rms_norm_eps",
        "rms_norm.eps",
        ("rms_norm",),
        lambda site, context: iter(({},)),
        lambda call, values: call.run(eps=values["eps"]),
        "RMS normalisation with eps {port} instead of {reference}",
        "eps",
        EPS,
        rank=4,
        reference_value=_rms_reference,
        examples=(
            Example(
                "F.rms_norm(x, (8,), y, 1e-6)",
                "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 1e-3) * y",
                ((4, 6, 8), (8,)),
                port_value=1e-3,
            ),
        ),
    ),
    Hypothesis(
        "layer_norm_eps_outside",
        "layer_norm.eps",
        ("layer_norm",),
        _propose_outside,
        _outside,
        "layer normalisation with eps added to the deviation, not to the variance",
        reference_value=lambda site, context: "inside the root",
        port_value=lambda values: values["form"],
        examples=(
            Example(
                "F.layer_norm(x, (8,), y, z, 0.01)",
                _BY_HAND + "return d / (ops.sqrt(v) + 0.01) * y + z",
                _TWO_VECTORS,
                port_value="outside the root",
            ),
        ),
    ),
    Hypothesis(
        "layer_norm_unbiased",
        "layer_norm.unbiased",
        ("layer_norm",),
        _propose_unbiased,
        _unbiased_layer,
        "layer normalisation by the variance over n - 1 instead of n",
        reference_value=lambda site, context: False,
        port_value=lambda values: True,
        rank=3,
        examples=(
            Example(
                "self.norm(x)",
                "(x - x.mean(axis=-1, keep_dims=True)) / (x.std(axis=-1, ddof=1, keepdims=True) "
                "+ 1e-5) * self.norm.gamma + self.norm.beta",
                modules={"norm": ("nn.LayerNorm(8)", "nn.LayerNorm((8,), epsilon=1e-5)")},
                port_value=True,
            ),
            Example(
                "F.layer_norm(x, (8,), y, z)",
                _BY_HAND + "return d / ops.sqrt(v * (8 / 7) + 1e-5) * y + z",
                _TWO_VECTORS,
            ),
        ),
    ),
    Hypothesis(
        "batch_norm_unbiased",
        "batch_norm.unbiased",
        ("batch_norm",),
        _propose_unbiased_batch,
        _unbiased_batch,
        "batch normalisation by the variance over n - 1 instead of n",
        reference_value=lambda site, context: False,
        port_value=lambda values: True,
        rank=3,
        examples=(
            Example(
                _TORCH_BATCH,
                _BATCH_BY_HAND
                + "return (x - m) / ops.sqrt(v * (100 / 99) + 1e-5) * y.reshape(1, 6, 1, 1) "
                "+ z.reshape(1, 6, 1, 1)",
                _CHANNELS,
                port_value=True,
            ),
        ),
    ),
    Hypothesis(
        "layer_norm_axes",
        "layer_norm.axes",
        ("layer_norm",),
        _propose_axes,
        _other_axes,
        "layer normalisation over axes {port} instead of {reference}",
        reference_value=_normalized_axes,
        port_value=lambda values: str(values["axes"]),
        rank=3,
        examples=(
            Example(
                "F.layer_norm(x, (8,), y, z)",
                "d = x - x.mean(axis=1, keep_dims=True)\n"
                "v = (d * d).mean(axis=1, keep_dims=True)\n"
                "return d / ops.sqrt(v + 1e-5) * y + z",
                _TWO_VECTORS,
                port_value="(-2,)",
            ),
        ),
    ),
    other_argument(
        "group_norm_groups",
        "group_norm.groups",
        ("group_norm",),
        "num_groups",
        _divisors,
        "group normalisation with {port} groups instead of {reference}",
        rank=3,
        examples=(
            Example(
                "self.norm(x)",
                "self.norm(x)",
                ((4, 12, 5, 5),),
                {"norm": ("nn.GroupNorm(3, 12)", "nn.GroupNorm(4, 12)")},
                port_value=4,
            ),
        ),
    ),
    _without(
        "layer_norm",
        "bias",
        "layer normalisation",
        Example(
            "F.layer_norm(x, (8,), y, z)",
            _BY_HAND + "return d / ops.sqrt(v + 1e-5) * y + 0 * z",
            _TWO_VECTORS,
        ),
    ),
    _without(
        "layer_norm",
        "weight",
        "layer normalisation",
        Example(
            "F.layer_norm(x, (8,), y, z)",
            _BY_HAND + "return d / ops.sqrt(v + 1e-5) + z + 0 * y",
            _TWO_VECTORS,
        ),
    ),
    _without(
        "rms_norm",
        "weight",
        "RMS normalisation",
        Example(
            "F.rms_norm(x, (8,), y, 1e-6)",
            "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 1e-6) + 0 * y",
            ((4, 6, 8), (8,)),
        ),
    ),
    _without(
        "batch_norm",
        "bias",
        "batch normalisation",
        Example(
            _TORCH_BATCH,
            _BATCH_BY_HAND
            + "return (x - m) / ops.sqrt(v + 1e-5) * y.reshape(1, 6, 1, 1) + 0 * z.sum()",
            _CHANNELS,
        ),
    ),
    _without(
        "batch_norm",
        "weight",
        "batch normalisation",
        Example(
            _TORCH_BATCH,
            _BATCH_BY_HAND
            + "return (x - m) / ops.sqrt(v + 1e-5) + z.reshape(1, 6, 1, 1) + 0 * y.sum()",
            _CHANNELS,
        ),
    ),
)
