"""Every hypothesis, in the order in which equally simple ones are preferred."""

from __future__ import annotations

from isograd.data.hypotheses import labels, numbers, pictures
from isograd.data.hypotheses.base import Hypothesis

HYPOTHESES: tuple[Hypothesis, ...] = (
    *pictures.HYPOTHESES,
    *numbers.HYPOTHESES,
    *labels.HYPOTHESES,
)
