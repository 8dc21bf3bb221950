"""Normalisations without their scale or their shift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.normalisation import (
    BATCH_BY_HAND,
    BY_HAND,
    CHANNELS,
    TORCH_BATCH,
    TWO_VECTORS,
)
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
)
from isograd.frameworks.base import FunctionSite, Operand


def _without(function: str, argument: str, words: str, example: Example) -> FunctionHypothesis:
    """The scale or the shift is not applied."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        if isinstance(site.arguments.get(argument), Operand):
            yield {argument: None}

    def change(call: Call, values: Values) -> Any:
        return call.run(**{argument: None})

    return FunctionHypothesis(
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


HYPOTHESES = (
    _without(
        "layer_norm",
        "bias",
        "layer normalisation",
        Example(
            "F.layer_norm(x, (8,), y, z)",
            BY_HAND + "return d / ops.sqrt(v + 1e-5) * y + 0 * z",
            TWO_VECTORS,
        ),
    ),
    _without(
        "layer_norm",
        "weight",
        "layer normalisation",
        Example(
            "F.layer_norm(x, (8,), y, z)",
            BY_HAND + "return d / ops.sqrt(v + 1e-5) + z + 0 * y",
            TWO_VECTORS,
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
            TORCH_BATCH,
            BATCH_BY_HAND
            + "return (x - m) / ops.sqrt(v + 1e-5) * y.reshape(1, 6, 1, 1) + 0 * z.sum()",
            CHANNELS,
        ),
    ),
    _without(
        "batch_norm",
        "weight",
        "batch normalisation",
        Example(
            TORCH_BATCH,
            BATCH_BY_HAND
            + "return (x - m) / ops.sqrt(v + 1e-5) + z.reshape(1, 6, 1, 1) + 0 * y.sum()",
            CHANNELS,
        ),
    ),
)
