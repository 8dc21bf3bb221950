"""All rules, by their codes."""

from __future__ import annotations

from isograd.watch.alerts import (
    activations,
    asked,
    data,
    gradients,
    losses,
    nonfinite,
    scale,
    weights,
)
from isograd.watch.alerts.rule import Rule

RULES: tuple[Rule, ...] = (
    *nonfinite.RULES,
    *losses.RULES,
    *gradients.RULES,
    *weights.RULES,
    *activations.RULES,
    *data.RULES,
    *scale.RULES,
    *asked.RULES,
)
BY_CODE: dict[str, Rule] = {rule.code: rule for rule in RULES}
