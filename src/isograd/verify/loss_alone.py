"""The loss alone: both sides on the reference's recorded outputs and the same targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd import tree
from isograd.frameworks.base import Tensors
from isograd.noise.envelope import ISOLATED_THRESHOLD, ISOLATED_VARIANTS, Measured, measured
from isograd.tensors import Role, TensorKey, TensorValue, keyed
from isograd.verify.end_to_end import PassResult, judge
from isograd.verify.session import Session
from isograd.worker.protocols import Passes

#: Targets of so many steps are tried.
_MOST_TARGETS = 4


@dataclass(frozen=True)
class LossRun:
    """What both sides were given, what they yielded, and how it is judged."""

    outputs: list[TensorValue | None]
    targets: list[Any]
    reference: dict[str, Measured]
    port: Tensors
    judged: PassResult


def run_loss(session: Session) -> LossRun:
    """Compute the loss of the last recorded pass's outputs on both sides.

    With the first targets, and with those of later steps while nothing differs: a class that is
    left out shows only where it occurs.
    """
    recorded: Tensors = session.reference.ask(Passes.recorded, 0)
    count = sum(1 for key, _ in keyed(recorded) if key.is_plain(Role.OUTPUT))
    outputs: list[TensorValue | None] = [recorded[TensorKey.output(i)] for i in range(count)]
    first = _run(session, outputs, session.targets())
    if _differs(first):
        return first
    for step in range(1, min(session.case.steps, _MOST_TARGETS)):
        targets = session.targets(step)
        if _equal(targets, first.targets):
            break
        later = _run(session, outputs, targets)
        if _differs(later):
            return later
    return first


def _run(session: Session, outputs: list[TensorValue | None], targets: list[Any]) -> LossRun:
    errors = session.reference.begin(Passes.measure_loss, outputs, targets, ISOLATED_VARIANTS)
    port = session.port.ask(Passes.loss, outputs, targets)
    reference = measured(errors.answer())
    return LossRun(outputs, targets, reference, port, judge(session, reference, port))


def _differs(run: LossRun) -> bool:
    comparisons = run.judged.comparisons.values()
    return bool(run.judged.problems) or any(c.exceeds(ISOLATED_THRESHOLD) for c in comparisons)


def _equal(first: list[Any], second: list[Any]) -> bool:
    """Whether all tensors of two lists of nested targets are the same."""
    ours, theirs = (tree.flatten(targets, _is_value)[0] for targets in (first, second))
    return len(ours) == len(theirs) and all(
        np.array_equal(a.values, b.values) for a, b in zip(ours, theirs, strict=True)
    )


def _is_value(value: Any) -> bool:
    return isinstance(value, TensorValue)
