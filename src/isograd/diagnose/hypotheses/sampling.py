"""Shuffling pixels and sampling on a grid."""

from __future__ import annotations

from typing import Any

from isograd.diagnose.hypothesis import Call, Example, FunctionHypothesis, Values, other_argument


def _shuffle_order(call: Call, values: Values) -> Any:
    x, factor = call["0"], int(call["1"])
    channels = x.shape[1] // factor**2
    x = x.unflatten(1, (factor, factor, channels)).permute(0, 3, 4, 1, 5, 2)
    return x.flatten(4, 5).flatten(2, 3)


HYPOTHESES = (
    FunctionHypothesis(
        "pixel_shuffle_order",
        "pixel_shuffle.order",
        ("pixel_shuffle",),
        lambda site, context: iter(({"order": "block first"},)),
        _shuffle_order,
        "pixels shuffled with the block's place before the channel",
        rank=2,
        reference_value=lambda site, context: "channel first",
        port_value=lambda values: values["order"],
        examples=(
            Example(
                "F.pixel_shuffle(x, 2)",
                "ops.transpose(x.reshape(2, 2, 2, 3, 5, 5), (0, 3, 4, 1, 5, 2))"
                ".reshape(2, 3, 10, 10)",
                ((2, 12, 5, 5),),
            ),
        ),
    ),
    other_argument(
        "grid_sample_align_corners",
        "grid_sample.align_corners",
        ("grid_sample",),
        "align_corners",
        lambda own, site: (not own,),
        "sampling on a grid with align_corners={port} instead of {reference}",
        rank=2,
        examples=(
            Example(
                "F.grid_sample(x, torch.tanh(y), align_corners=False)",
                "ops.grid_sample(x, ops.tanh(y), align_corners=True)",
                ((2, 3, 6, 7), (2, 4, 5, 2)),
                port_value=True,
            ),
        ),
    ),
)
