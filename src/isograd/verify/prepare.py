"""Two built networks made ready for comparison: paired, with the same weights that hide nothing."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.model import Finding, Gap
from isograd.verify.doubt import settle_pairing
from isograd.verify.findings import some
from isograd.verify.parameters import check_parameters
from isograd.verify.probe import probe_state
from isograd.verify.session import Session
from isograd.worker.protocols import Networks


@dataclass(frozen=True)
class Prepared:
    """What stage parameters found; checked: the number of compared tensors."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    checked: int
    detail: str


def prepare(session: Session) -> Prepared:
    """Check the parameters of both networks, settle their pairing, and load equal weights.

    The session is built already.
    """
    findings, gaps, count, detail = check_parameters(session)
    state, moved = probe_state(
        session.reference_state, session.reference_structure.parameters, session.seed
    )
    notes = []
    if moved:
        notes.append(
            f"{len(moved)} constant parameters and fresh statistics ({some(moved)}) were "
            "moved on both sides, because ones and zeros hide faults"
        )
    notes += settle_pairing(session, state, session.case.modes[0])
    session.reference.ask(Networks.load_state, state)
    session.port.ask(Networks.load_state, session.transfer(state))
    return Prepared(tuple(findings), tuple(gaps), tuple(notes), count, detail)
