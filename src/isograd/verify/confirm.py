"""A proof is repeated on new draws: other inputs, on which the fault shows and the fix removes it.

What proved a cause was found on one batch, and the fix was fitted to it.  On another batch the
port must differ without the fix and agree with it; else the cause stays a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import PortFix, Trial
from isograd.model import Stage
from isograd.tensors import Array, TensorValue
from isograd.verify.replay import Replayer
from isograd.verify.session import Session
from isograd.verify.unit_causes import UnitCauses
from isograd.verify.unit_finding import UnitFinding
from isograd.verify.units import Unit
from isograd.worker.protocols import Passes

#: The batch that proofs draw; the stages before use the first ones.
PROOF_BATCH = 1_009
#: A fault may not show on one batch (a class that is not drawn): so many are tried.
_MOST_BATCHES = 3


@dataclass(frozen=True)
class Claim:
    """A proof as it was made: the fixes that remove what one stage of a unit shows.

    quiet: what the change is projected on, where it lies below the noise.  findings: those
    that it proves.
    """

    unit: Unit
    stage: Stage
    fixes: tuple[PortFix, ...]
    quiet: tuple[Trial, ...]
    findings: tuple[UnitFinding, ...]


def rotated(values: Array) -> Array:
    """The rows of an array, each one place further: other pairs of rows and targets.

    values, returns: (rows, ...) or 0-d, any dtype.
    """
    return np.roll(values, 1, axis=0) if values.ndim else values


class Confirmation:
    """Repeats the proofs of one recorded pass on other batches, and records the pass again."""

    def __init__(
        self, session: Session, replayer: Replayer, causes: UnitCauses, mode: str, backward: bool
    ) -> None:
        self._session, self._replayer, self._causes = session, replayer, causes
        self._mode, self._backward = mode, backward

    def refused(self, claims: Sequence[Claim]) -> list[Claim]:
        """The claims that other batches do not confirm."""
        first = self._drawn(0)
        open_claims, wrong = list(claims), []
        self._replayer.settle()
        try:
            for batch in range(PROOF_BATCH, PROOF_BATCH + _MOST_BATCHES):
                drawn = self._drawn(batch)
                if not open_claims or _are_equal(first, drawn):
                    break  # of inputs that are given there is no other batch
                if not self._record(batch):
                    continue
                for claim in list(open_claims):
                    confirmed = self._judge(claim)
                    if confirmed is not None:
                        open_claims.remove(claim)
                        wrong += [] if confirmed else [claim]
            else:
                wrong += open_claims  # the fault was never seen again
        finally:
            self._record(0)
        return wrong

    def _drawn(self, batch: int) -> list[Any]:
        return [self._session.inputs(batch), self._session.targets(batch)]

    def _record(self, batch: int) -> bool:
        """Run a batch on both sides; whether both make the same calls as before."""
        session = self._session
        request = session.pass_request(self._mode, batch, backward=self._backward, record=True)
        try:
            ours = session.reference.begin(Passes.forward, request)
            try:
                session.port.ask(Passes.forward, request)
            finally:
                ours.answer()
            calls = session.reference.ask(Passes.calls), session.port.ask(Passes.calls)
        except IsogradError as error:
            session.note_unanswered(f"batch {batch} was not recorded for the proofs", error)
            return False
        return calls == (self._replayer.reference_calls, self._replayer.port_calls)

    def _judge(self, claim: Claim) -> bool | None:
        """Whether the fix removes what this batch shows; None where it shows nothing."""
        result = self._replayer.run_aside(claim.unit)
        if result.failure or result.requests is None:
            return False
        shows = any(
            not t.ratio <= self._replayer.threshold
            for t in result.tensors
            if t.stage is claim.stage
        )
        if not shows and not claim.quiet:
            return None
        return self._causes.agrees(result, claim.stage, claim.fixes, claim.quiet)


def _are_equal(first: Any, second: Any) -> bool:
    if isinstance(first, TensorValue) and isinstance(second, TensorValue):
        return np.array_equal(first.values, second.values)
    if isinstance(first, dict) and isinstance(second, dict):
        return all(_are_equal(value, second.get(key)) for key, value in first.items())
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_are_equal, first, second))
    return bool(first == second)
