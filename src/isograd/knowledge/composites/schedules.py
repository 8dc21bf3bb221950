"""Learning-rate schedules that MindSpore lacks."""

from __future__ import annotations

import math
from typing import Any

from mindspore.experimental.optim import lr_scheduler  # noqa: TID253


class OneCycleLR(lr_scheduler.LambdaLR):  # type: ignore[misc]
    """torch's OneCycleLR: up to the greatest rate, then down; the rate only, not the momentum."""

    def __init__(
        self,
        optimizer: Any,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        total = total_steps or (epochs or 0) * (steps_per_epoch or 0)
        first = max_lr / div_factor
        last = first / final_div_factor
        top = float(pct_start * total) - 1

        def anneal(start: float, end: float, part: float) -> float:
            if anneal_strategy == "cos":
                return end + (start - end) / 2 * (1 + math.cos(math.pi * part))
            return start + (end - start) * part

        def rate(step: int) -> float:
            if step <= top:
                return anneal(first, max_lr, step / top)
            return anneal(max_lr, last, (step - top) / (total - 1 - top))

        base = float(optimizer.param_groups[0]["lr"])
        super().__init__(optimizer, lambda step: rate(step) / base)
