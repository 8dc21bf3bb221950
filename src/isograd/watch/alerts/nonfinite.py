"""Values that are NaN or infinite: loss, gradients, weights, activations, optimizer state."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, number
from isograd.watch.alerts.training import PARAMETERS, activations, example, look, table
from isograd.watch.observation import Network, ScaleFacts, StepRecord, TensorTable

_INFINITE = math.inf
_OVERFLOW = ScaleFacts(65536.0, is_overflow=True)


def _loss(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        if record.loss is not None and not math.isfinite(record.loss):
            yield Hit(record.loss)

    return check


def _gradients(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        bad = record.gradient_nonfinite
        if bad is None or not bad.any() or record.is_skipped:
            return
        at = int(np.flatnonzero(bad)[-1])
        yield Hit(
            math.nan,
            module=network.module(at),
            tensor=network.parameters[at],
            facts={"how_many": int(bad.sum()), "all": len(bad)},
        )

    return check


def _weights(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        weights = record.look.weights if record.look else None
        for at in _bad(weights):
            name = network.parameters[at]
            yield Hit(math.nan, module=network.module(at), tensor=name)
            return

    return check


def _activations(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        found = record.look.activations if record.look else None
        if record.loss is not None and not math.isfinite(record.loss):
            return
        for at in _bad(found.table if found else None):
            assert found is not None
            row = found.table.values[at]
            yield Hit(
                math.nan,
                module=found.table.names[at],
                facts={"nans": int(row[1]), "infinities": int(row[2]), "count": int(row[0])},
            )
            return

    return check


def _state(limits: Limits, network: Network) -> Check:
    largest = number(limits, "largest")

    def check(record: StepRecord) -> Iterator[Hit]:
        value = record.look.state_largest if record.look else math.nan
        if value > largest:
            yield Hit(value, largest)

    return check


def _bad(table: TensorTable | None) -> list[int]:
    """Rows with NaN or infinity."""
    if table is None:
        return []
    bad = table.column("nan_count") + table.column("infinity_count") > 0
    return [int(at) for at in np.flatnonzero(bad)]


def _one_bad(step: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.array([False, False, step == 3, False, False])


RULES = (
    Rule(
        code="loss.nonfinite",
        severity=Severity.ALERT,
        message="the loss is {value}",
        advice="Look at the origin: the operator that made the first NaN or Inf of this step.",
        make=_loss,
        source="IEEE 754: no update from such a loss is meaningful",
        peers=("AUTOTRAINER abnormal loss",),
        examples=(
            example("the loss of step 3 is NaN", 5, loss=lambda s: math.nan if s == 3 else 1.0),
            example(
                "the loss of step 3 is infinite", 5, loss=lambda s: 1.0 if s < 3 else _INFINITE
            ),
        ),
        counterexamples=(example("the loss falls", 60),),
    ),
    Rule(
        code="gradient.nonfinite",
        severity=Severity.ALERT,
        message="{how_many} of {all} gradients are not finite, the last of them {tensor}",
        advice="Look at the origin; gradients are made from the last module to the first.",
        make=_gradients,
        source="MindInsight debugger, condition gradient_exploding (NaN or Inf)",
        peers=("MindInsight GE", "msprobe AnomalyNan"),
        examples=(example("one gradient is NaN", 5, gradient_nonfinite=_one_bad),),
        counterexamples=(
            example("the gradients are finite", 60),
            example(
                "a loss scaler finds an overflow and leaves the update out",
                5,
                gradient_nonfinite=_one_bad,
                scale=lambda step: _OVERFLOW if step == 3 else None,
            ),
        ),
    ),
    Rule(
        code="weight.nonfinite",
        severity=Severity.ALERT,
        message="the weight {tensor} holds NaN or Inf before the step begins",
        advice="The update of an earlier step or the checkpoint brought it in; go back to a "
        "checkpoint before it.",
        make=_weights,
        source="MindInsight debugger, condition weight_overflow",
        peers=("MindInsight WO",),
        examples=(
            example(
                "a weight holds a NaN",
                3,
                look=look(weights=table(PARAMETERS, nan_count=(0, 0, 1, 0, 0))),
            ),
        ),
        counterexamples=(example("all weights are finite", 3),),
    ),
    Rule(
        code="tensor.nonfinite",
        severity=Severity.NOTICE,
        message="the output of {module} holds {nans} NaN and {infinities} Inf of {count:,}",
        advice="It does not reach the loss now. A mask of -inf is meant; any other value that is "
        "masked later still makes NaN in the backward pass: mask the input and not the result.",
        make=_activations,
        source="MindInsight debugger, condition tensor_overflow",
        peers=("MindInsight TO",),
        examples=(
            example("a module's output holds Inf", 3, look=activations("Exp", infinity_count=2)),
        ),
        counterexamples=(example("outputs are finite", 3, look=activations("Exp")),),
    ),
    Rule(
        code="optimizer.state",
        severity=Severity.ALERT,
        message="the optimizer's state holds {value:.3g}, more than {limit:.3g}",
        advice="A step with exploding gradients is remembered there; clip the gradients, and go "
        "back to a checkpoint before it.",
        make=_state,
        source="msprobe, AnomalyNan's threshold for every monitored value",
        peers=("msprobe AnomalyNan",),
        limits=(Limit("largest", 1e10, "greatest magnitude in the state"),),
        examples=(
            example("a moment is 1e14", 3, look=look(state_largest=1e14)),
            example("a moment is infinite", 3, look=look(state_largest=_INFINITE)),
        ),
        counterexamples=(
            example("moments are small", 3, look=look(state_largest=25.0)),
            example("the state is not known", 3),
        ),
    ),
)
