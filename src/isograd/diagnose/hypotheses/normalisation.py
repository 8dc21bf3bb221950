"""Normalisations of torch: eps, the variance's divisor, scale and shift, axes and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Values,
    other_number,
)
from isograd.frameworks.base import FunctionSite

EPS = Number("eps", (1e-5, 1e-3, 1e-6, 1e-7, 1e-8, 1e-12, 1e-4, 1e-2, 0.1))


def standardised(x: Any, axes: list[int], eps: float, unbiased: bool, outside: bool) -> Any:
    """The tensor minus its mean, over its deviation; outside: eps is added to the deviation."""
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, unbiased=unbiased, keepdim=True)
    if outside:
        return (x - mean) / (variance.sqrt() + eps)
    return (x - mean) * (variance + eps).rsqrt()


def affine(result: Any, call: Call, axis: int | None) -> Any:
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


def eps(call: Call) -> float:
    return float(call.arguments.get("eps", 1e-5))


def _eps_hypothesis(function: str, words: str, *examples: Example) -> FunctionHypothesis:
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
    return affine(
        standardised(call["input"], _layer_axes(call), eps(call), False, True), call, None
    )


def _propose_unbiased(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"outside": False}
    yield {"outside": True}


def _unbiased_layer(call: Call, values: Values) -> Any:
    axes = _layer_axes(call)
    return affine(standardised(call["input"], axes, eps(call), True, values["outside"]), call, None)


def _propose_unbiased_batch(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.arguments.get("training"):
        yield {}


def _unbiased_batch(call: Call, values: Values) -> Any:
    x = call["input"]
    call.run()  # the running statistics move all the same
    axes = [0, *range(2, x.dim())]
    return affine(standardised(x, axes, eps(call), True, False), call, 1)


BY_HAND = "d = x - x.mean(axis=-1, keep_dims=True)\nv = (d * d).mean(axis=-1, keep_dims=True)\n"
BATCH_BY_HAND = (
    "m = x.mean(axis=(0, 2, 3), keep_dims=True)\nv = ((x - m) ** 2).mean(axis=(0, 2, 3), "
    "keep_dims=True)\n"
)
TWO_VECTORS = ((4, 6, 8), (8,), (8,))
CHANNELS = ((4, 6, 5, 5), (6,), (6,))
TORCH_BATCH = "F.batch_norm(x, None, None, y, z, True)"

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
            "x = ops.relu(x)\n" + BY_HAND + "return d / ops.sqrt(v + 3e-4) * y + z",
            TWO_VECTORS,
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
    FunctionHypothesis(
        "rms_norm_eps",
        "rms_norm.eps",
        ("rms_norm",),
        lambda site, context: iter(({},)),
        lambda call, values: call.run(eps=values["eps"]),
        "RMS normalisation with eps {port} instead of {reference}",
        "eps",
        numbers=(EPS,),
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
    FunctionHypothesis(
        "layer_norm_eps_outside",
        "layer_norm.eps",
        ("layer_norm",),
        _propose_outside,
        _outside,
        "layer normalisation with eps added to the deviation, not to the variance",
        quiet=True,
        reference_value=lambda site, context: "inside the root",
        port_value=lambda values: values["form"],
        examples=(
            Example(
                "F.layer_norm(x, (8,), y, z, 0.01)",
                BY_HAND + "return d / (ops.sqrt(v) + 0.01) * y + z",
                TWO_VECTORS,
                port_value="outside the root",
            ),
        ),
    ),
    FunctionHypothesis(
        "layer_norm_unbiased",
        "layer_norm.unbiased",
        ("layer_norm",),
        _propose_unbiased,
        _unbiased_layer,
        "layer normalisation by the variance over n - 1 instead of n",
        reference_value=lambda site, context: False,
        port_value=lambda values: True,
        quiet=True,
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
                BY_HAND + "return d / ops.sqrt(v * (8 / 7) + 1e-5) * y + z",
                TWO_VECTORS,
            ),
        ),
    ),
    FunctionHypothesis(
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
                TORCH_BATCH,
                BATCH_BY_HAND
                + "return (x - m) / ops.sqrt(v * (100 / 99) + 1e-5) * y.reshape(1, 6, 1, 1) "
                "+ z.reshape(1, 6, 1, 1)",
                CHANNELS,
                port_value=True,
            ),
        ),
    ),
)
