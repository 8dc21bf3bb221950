"""How much a forward difference matters: does it reach the output, the loss or a gradient?

The measured error of the port's module is added to the reference's own tensor, or to its gradient,
and the reference is run on: if nothing leaves the end-to-end envelope, something downstream (a
normalisation after a bias, a softmax after a mask) undoes the difference.  The same in float64
says whether anything is left of it.  A change below the
noise is made in float64 instead: rounding would hide it, or look like it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from isograd.frameworks.base import Shift, Trial
from isograd.model import Severity
from isograd.verify.end_to_end import PassResult
from isograd.verify.session import Session
from isograd.worker.protocols import Reach

#: An exact pass that moves by less is not reached: rounding of float64 over a deep network.
_NOTHING = 1e-9


def severity_of(
    session: Session, mode: str, backward: bool, whole: PassResult, shift: Shift | None
) -> Severity:
    """Effective where the shift leaves an envelope of the reference's results.

    Masked where it moves a result within its envelope, or what the network keeps; equivalent
    where it reaches nothing at all.
    """
    if shift is None:
        return Severity.EFFECTIVE
    request = session.pass_request(mode, backward=backward)
    counts = session.counts
    if _leaves(session.reference.ask(Reach.shifted, request, shift), whole, counts):
        return Severity.EFFECTIVE
    reached = session.reference.ask(Reach.reached, request, shift)
    nothing = all(moved <= _NOTHING for key, moved in reached.items() if counts(key))
    return Severity.EQUIVALENT if nothing else Severity.MASKED


def severity_of_gradients(
    session: Session, mode: str, whole: PassResult, shifts: Sequence[Shift | None]
) -> Severity:
    """The gravest of the differing gradients of one module; a parameter's own is effective."""
    found: set[Severity] = set()
    for shift in shifts:
        found.add(severity_of(session, mode, True, whole, shift))
        if Severity.EFFECTIVE in found:
            return Severity.EFFECTIVE
    return Severity.MASKED if Severity.MASKED in found else Severity.EQUIVALENT


def severity_below_noise(
    session: Session, mode: str, backward: bool, whole: PassResult, trials: tuple[Trial, ...]
) -> Severity:
    """Effective where the change that the trials make leaves an end-to-end envelope."""
    request = session.pass_request(mode, backward=backward)
    moved = session.reference.ask(Reach.moved, request, trials)
    leaves = _leaves(moved, whole, session.counts)
    return Severity.EFFECTIVE if leaves else Severity.BELOW_NOISE


def _leaves(moved: Mapping[str, float], whole: PassResult, counts: Callable[[str], bool]) -> bool:
    return any(
        not distance <= whole.allowed.get(key, 0.0)
        for key, distance in moved.items()
        if counts(key)
    )
