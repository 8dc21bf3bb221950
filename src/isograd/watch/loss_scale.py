"""The history of the loss scale, and which scale would have fitted."""

from __future__ import annotations

import numpy as np

from isograd.runs.table import Table
from isograd.watch.model import Curve, LossScale

#: float16 ends at 65504 = 2^16 - 32; a factor of two is left for the next batch.
_FITTING_EXPONENT = 15


def loss_scale_of(scalars: Table) -> LossScale | None:
    """What happened to the loss scale; None where the run had none."""
    steps, scales = scalars.series("scale")
    if not len(steps):
        return None
    overflow_steps, overflow = scalars.series("overflow")
    overflows = tuple(int(step) for step in overflow_steps[overflow > 0.0])
    mode = "dynamic" if len(np.unique(scales)) > 1 else "static"
    return LossScale(
        mode=mode,
        overflows=overflows,
        final=float(scales[-1]),
        advice=_advice(scalars, overflows),
        curve=Curve("loss scale", steps, scales),
    )


def _advice(scalars: Table, overflows: tuple[int, ...]) -> str:
    exponent_steps, exponents = scalars.series("scaled_gradient_exponent")
    all_steps, all_scales = scalars.series("scale")
    warm_up = sum(1 for step in overflows if step < 32)
    late = len(overflows) - warm_up
    parts = [
        f"{len(overflows)} of {len(all_steps)} updates were left out, "
        f"{warm_up} of them in the first 32 steps, while the scale is found."
    ]
    if len(exponents):
        scale_at = dict(zip(all_steps.tolist(), all_scales.tolist(), strict=True))
        unscaled = max(
            float(exponent) - float(np.log2(scale_at[step]))
            for step, exponent in zip(exponent_steps.tolist(), exponents.tolist(), strict=True)
        )
        fitting = 2.0 ** np.floor(_FITTING_EXPONENT - unscaled)
        parts.append(
            f"The greatest gradient element was about 2^{unscaled:.0f}: a scale of {fitting:g} "
            "would have fitted all steps that were looked at."
        )
    if late > max(2, len(all_steps) // 500):
        parts.append(
            f"{late} overflows came later: keep the operators that overflow (softmax, norms, "
            "losses, large sums) in float32, or raise the growth interval."
        )
    return " ".join(parts)
