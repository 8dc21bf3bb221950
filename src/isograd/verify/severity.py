"""How much a forward difference matters: does it reach the output, the loss or a gradient?

The measured error of the port's module is added to the reference's own tensor, and the
reference is run on: if nothing leaves the end-to-end envelope, something downstream (a
normalisation after a bias, a softmax after a mask) undoes the difference.
"""

from __future__ import annotations

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
    for key, distance in moved.items():
        if not distance <= whole.allowed.get(key, 0.0):
            return Severity.EFFECTIVE
    return Severity.MASKED
