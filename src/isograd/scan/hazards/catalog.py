"""Every hazard that scan knows, by its code."""

from __future__ import annotations

from isograd.scan.hazards import memory, shapes, training
from isograd.scan.hazards.rule import Rule

CATALOG: dict[str, Rule] = {
    rule.code: rule
    for rule in (*shapes.RULES, *memory.RULES, *training.TRAINING, *training.ON_ASCEND)
}
