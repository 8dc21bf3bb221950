"""Conditions of MindInsight's debugger that have no default: silent until a person sets a limit.

Their parameters keep MindInsight's names: `abs_mean_gt`, `max_lt`, …; each is checked on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Example, Hit, Limit, Limits, Rule, Severity
from isograd.watch.alerts.training import PARAMETERS, activations, look, table, training
from isograd.watch.observation import Network, StepRecord, TensorTable

Tables = Callable[[StepRecord], "TensorTable | None"]

_STATISTICS = {"abs_mean": "abs_mean", "max": "maximum", "min": "minimum", "mean": "mean",
               "range_percentage": "zero_share"}  # fmt: skip


def _weights(record: StepRecord) -> TensorTable | None:
    return record.look.weights if record.look else None


def _gradients(record: StepRecord) -> TensorTable | None:
    return record.look.gradients if record.look else None


def _outputs(record: StepRecord) -> TensorTable | None:
    found = record.look.activations if record.look else None
    return found.table if found else None


def _make(tables: Tables) -> Callable[[Limits, Network], Check]:
    def make(limits: Limits, network: Network) -> Check:
        asked = [(name, value) for name, value in limits.items() if value is not None]

        def check(record: StepRecord) -> Iterator[Hit]:
            found = tables(record)
            if found is None:
                return
            for name, limit in asked:
                values, is_above = _measured(found, name)
                off = values > limit if is_above else values < limit
                for at in np.flatnonzero(off).tolist():
                    yield Hit(float(values[at]), limit, tensor=found.names[at],
                              facts={"parameter": name})  # fmt: skip

        return check

    return make


def _measured(
    table_: TensorTable, parameter: str
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], bool]:
    """The numbers that a parameter speaks of, and whether it is an upper limit."""
    statistic, _, direction = parameter.rpartition("_")
    if statistic == "max_min":
        return table_.column("maximum") - table_.column("minimum"), direction == "gt"
    return table_.column(_STATISTICS[statistic]), direction == "gt"


def _limits(direction: str) -> tuple[Limit, ...]:
    words = {"abs_mean": "mean of the magnitudes", "max": "greatest element",
             "min": "smallest element", "mean": "mean"}  # fmt: skip
    return tuple(Limit(f"{name}_{direction}", None, text) for name, text in words.items())


def _asked(code: str, tables: Tables, limits: tuple[Limit, ...], peer: str, text: str) -> Rule:
    return Rule(
        code=code,
        severity=Severity.ALERT,
        message=f"{{tensor}}: {text} ({{parameter}}): {{value:.4g}} against {{limit:.4g}}",
        advice="The limit is your own; look at what changed at this step.",
        make=_make(tables),
        source="set by the user; MindInsight has no default either",
        peers=(f"MindInsight {peer}",),
        limits=limits,
    )


RULES = (
    _asked("weight.too_large", _weights, _limits("gt"), "WL", "the weight is too large"),
    _asked("weight.too_small", _weights, _limits("lt"), "WS", "the weight is too small"),
    _asked("gradient.too_large", _gradients, _limits("gt"), "GL", "the gradient is too large"),
    _asked("gradient.too_small", _gradients, _limits("lt"), "GV", "the gradient is too small"),
    _asked("tensor.too_large", _outputs, _limits("gt"), "TL", "the output is too large"),
    _asked("tensor.too_small", _outputs, _limits("lt"), "TS", "the output is too small"),
    _asked(
        "tensor.range",
        _outputs,
        (
            Limit("max_min_gt", None, "greatest minus smallest element"),
            Limit("max_min_lt", None, "greatest minus smallest element"),
        ),
        "TR",
        "the output's range",
    ),
)

#: For the tests: a threshold that a usual tensor violates, and one that it keeps, by rule.
ASKED_EXAMPLES: dict[str, tuple[dict[str, float], dict[str, float], Example]] = {
    code: (
        {name: violated},
        {name: kept},
        Example("the limit is violated", training(3, look=what)),
    )
    for code, name, violated, kept, what in (
        ("weight.too_large", "max_gt", 0.05, 5.0, look(weights=table(PARAMETERS))),
        ("weight.too_small", "abs_mean_lt", 0.5, 0.01, look(weights=table(PARAMETERS))),
        ("gradient.too_large", "abs_mean_gt", 1e-4, 1.0, look()),
        ("gradient.too_small", "abs_mean_lt", 1e-2, 1e-9, look()),
        ("tensor.too_large", "mean_gt", -1.0, 1.0, activations("ReLU")),
        ("tensor.too_small", "min_lt", 0.0, -1.0, activations("ReLU")),
        ("tensor.range", "max_min_gt", 0.1, 1.0, activations("ReLU")),
    )
}
