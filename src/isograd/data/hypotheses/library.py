"""Every hypothesis, in the order in which equally simple ones are preferred."""

from __future__ import annotations

from isograd.data.hypotheses import boxes, labels, numbers, pictures, token_sequences
from isograd.data.hypotheses.base import Hypothesis

HYPOTHESES: tuple[Hypothesis, ...] = (
    *pictures.HYPOTHESES,
    *numbers.HYPOTHESES,
    *labels.HYPOTHESES,
    *token_sequences.HYPOTHESES,
    *boxes.HYPOTHESES,
)
