"""How much a forward difference matters: does it reach the output, the loss or a gradient?

The measured error of the port's module is added to the reference's own tensor, and the
reference is run on: if nothing leaves the end-to-end envelope, something downstream (a
normalisation after a bias, a softmax after a mask) undoes the difference.  A change below the
noise is made in float64 instead: rounding would hide it, or look like it.
"""

from __future__ import annotations

from isograd.frameworks.base import Trial
from isograd.model import Severity
from isograd.tensors import TensorValue
from isograd.verify.end_to_end import PassResult
from isograd.verify.session import Session


def severity_of(
    session: Session,
    mode: str,
    backward: bool,
    whole: PassResult,
    shift: tuple[int, str, int, TensorValue] | None,
) -> Severity:
    """Effective where the shift reaches a result of the reference's network, else masked."""
    if shift is None:
        return Severity.EFFECTIVE
    call, where, slot, value = shift
    values: list[TensorValue | None] = [None] * slot + [value]
    moved = session.reference.call(
        "shifted", mode, session.inputs(), session.targets(), backward, (call, where, values)
    )
    return Severity.EFFECTIVE if _leaves(moved, whole) else Severity.MASKED


def severity_below_noise(
    session: Session, mode: str, backward: bool, whole: PassResult, trials: tuple[Trial, ...]
) -> Severity:
    """Effective where the change that the trials make leaves an end-to-end envelope."""
    moved = session.reference.call(
        "moved", mode, session.inputs(), session.targets(), backward, trials
    )
    return Severity.EFFECTIVE if _leaves(moved, whole) else Severity.BELOW_NOISE


def _leaves(moved: dict[str, float], whole: PassResult) -> bool:
    return any(not distance <= whole.allowed.get(key, 0.0) for key, distance in moved.items())
