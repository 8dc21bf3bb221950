"""Asks the reference's worker for the cause of what a replay found, and the port for its proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isograd.diagnose.decide import Diagnosis, NamedCause
from isograd.diagnose.hypothesis import Surroundings
from isograd.errors import IsogradError
from isograd.frameworks.base import FunctionCall, PortFix, ReplayRequest, Tensors, Trial
from isograd.model import Cause, Fix, Stage
from isograd.noise.envelope import ISOLATED_THRESHOLD, Measured, compare
from isograd.pairing.transforms import Identity
from isograd.tensors import Array, Role, TensorKey, TensorValue
from isograd.verify.proof import PortView, Prover
from isograd.verify.session import Session
from isograd.worker.protocols import Causes, Fixes
from isograd.worker.requests import DiagnosisRequest, SubjectRequest

#: Seconds for the experiments of one subject; what was found until then counts.
LIMIT_S = 20.0
QUIET_LIMIT_S = 3.0

_PREFIXES = {
    Stage.FORWARD: ("output.", "input_of."),
    Stage.BACKWARD: ("gradient.",),
    Stage.TRAINING: ("buffer.",),
    Stage.LOSS: ("loss", "gradient."),
}


@dataclass(frozen=True)
class Subject:
    """What is diagnosed: a replay's request, or the loss of given outputs (request None)."""

    request: ReplayRequest | None
    outputs: Sequence[TensorValue | None] = ()
    targets: Sequence[TensorValue] = ()
    surroundings: Surroundings = field(default_factory=Surroundings)

    def asked(self) -> SubjectRequest:
        """The subject as the worker takes it."""
        return SubjectRequest(self.request, list(self.outputs), list(self.targets))

    @property
    def name(self) -> str:
        """What it is, for a person."""
        return "the loss" if self.request is None else self.surroundings.root or "the network"

    def given(self) -> dict[str, Array]:
        """What it is given, in its shapes and dtypes, by the names that `Operand.source` uses."""
        inputs = self.outputs if self.request is None else self.request.inputs
        found = {TensorKey.input(i): v.values for i, v in enumerate(inputs) if v is not None}
        return found | {f"target.{i}": v.values for i, v in enumerate(self.targets)}


def ask(
    session: Session,
    subject: Subject,
    stage: Stage,
    port: Tensors,
    fixed: tuple[Trial, ...] = (),
    likely: tuple[str, ...] = (),
) -> Diagnosis | None:
    """The diagnosis of one stage of a subject; None where it could not be asked.

    Why not is kept for the report (`Session.unanswered`).
    port: under the reference's names, in its shapes, any dtypes.
    fixed: causes that are granted.
    likely: hypotheses that are tried first.
    """
    wanted = wanted_keys(stage, port)
    if not wanted:
        return None
    request = DiagnosisRequest(
        subject.asked(),
        port,
        wanted,
        ISOLATED_THRESHOLD,
        LIMIT_S,
        subject.surroundings,
        fixed,
        likely,
    )
    return _answer(session, subject, Causes.diagnose, request)


def ask_quietly(
    session: Session, subject: Subject, port: Tensors, wanted: tuple[str, ...]
) -> Diagnosis | None:
    """A small change within the noise; None where it could not be asked, as for `ask`.

    port: under the reference's names, in its shapes, any dtypes.
    """
    request = DiagnosisRequest(
        subject.asked(), port, wanted, ISOLATED_THRESHOLD, QUIET_LIMIT_S, subject.surroundings
    )
    return _answer(session, subject, Causes.diagnose_quietly, request)


def _answer(
    session: Session,
    subject: Subject,
    method: Callable[[Any, DiagnosisRequest], Diagnosis],
    request: DiagnosisRequest,
) -> Diagnosis | None:
    if not session.can_diagnose:
        note = f"no cause is looked for: {session.reference.framework} does not show its functions"
        if note not in session.unanswered:
            session.unanswered.append(note)
        return None
    try:
        return session.reference.ask(method, request)
    except IsogradError as error:
        session.note_unanswered(f"no cause was looked for in {subject.name}", error)
        return None


def wanted_keys(stage: Stage, port: Tensors) -> tuple[str, ...]:
    """The tensors that a stage judges: floating ones, and positions or tokens handed on.

    port: by name, any shapes and dtypes.
    """
    prefixes = _PREFIXES[stage]
    return tuple(
        key
        for key, value in port.items()
        if key.startswith(prefixes)
        and (value.is_floating or TensorKey(key).role is Role.INPUT_OF_PIN)
    )


def as_cause(named: NamedCause, proved: bool = False) -> Cause:
    """The cause as a report holds it."""
    return Cause(
        named.id,
        named.reference,
        named.port,
        named.alpha,
        (named.alpha_low, named.alpha_high),
        proved,
        named.alternatives,
        named.text,
    )


def prove(
    session: Session,
    subject: Subject,
    causes: Sequence[NamedCause],
    sides: PortSide,
    fixed: tuple[Trial, ...] = (),
) -> tuple[PortFix, ...]:
    """Fixes of the port, one for each cause, under which it agrees; empty where none is found."""
    if not session.can_fix:
        return ()
    asked = subject.asked()
    trials = tuple(cause.trial for cause in causes)
    try:
        sites = session.reference.ask(Causes.site_values, asked, fixed)
        predicted = session.reference.ask(Causes.site_values, asked, (*fixed, *trials))
        events = sides.trace()
        view = PortView(events, sides.named, sides.ends())
    except IsogradError as error:
        session.note_unanswered(f"no cause was proved in {subject.name}", error)
        return ()
    prover = Prover(
        session.port,
        sites,
        predicted,
        view,
        subject.given(),
        lambda name: _same_parameter(session, name),
        sides.cells,
        sides.agrees,
    )
    return prover.prove(causes)


@dataclass(frozen=True)
class PortSide:
    """How the port's side of a subject is run."""

    trace: Callable[[], tuple[FunctionCall, ...]]
    ends: Callable[[], dict[str, Array]]
    named: dict[str, Array]
    cells: Sequence[str]
    agrees: Callable[[tuple[PortFix, ...]], bool]


def _same_parameter(session: Session, name: str) -> str | None:
    """The port's parameter that holds this one unchanged."""
    pair = session.pair_of(name)
    if pair is None or len(pair.reference) != 1 or not isinstance(pair.transform, Identity):
        return None
    return pair.port[0]


def judged_as_reference(
    reference: Mapping[str, Measured], port: Tensors, wanted: Sequence[str]
) -> bool:
    """Whether the port's tensors agree with the unchanged reference.

    port: by name, any shapes and dtypes; another shape than the reference's disagrees.
    """
    for key in wanted:
        expected, found = reference.get(key), port.get(key)
        if expected is None or found is None or found.shape != expected.values.shape:
            return False
        if not compare(key, expected, found).ratio <= ISOLATED_THRESHOLD:
            return False
    return bool(wanted)


#: From here on an edit's text is cut where a person reads it; the edit itself is whole.
_LONGEST = 120


def fix_of(session: Session, fixes: Sequence[PortFix], port_module: str) -> Fix | None:
    """The proved fix: as edits of the port's source, else what to compute at which line."""
    if not fixes:
        return None
    try:
        edits = session.port.ask(Fixes.edits, tuple(fixes))
        words = [session.port.ask(Fixes.edit_text, fix) for fix in fixes]
    except IsogradError as error:
        session.note_unanswered(f"the fix of {port_module or 'the network'} has no text", error)
        return None
    rebuilt = all(fix.kind == "rebuild" for fix in fixes)
    if edits and not rebuilt:
        text = "; ".join(f"{_shown(edit.old)} → {_shown(edit.new)}" for edit in edits)
        return Fix(text, edits[0].where, edits)
    built = {m.name: m.where for m in session.port_structure.modules}
    texts = [
        text if fix.kind == "rebuild" else _in_words(fix, text, where, _handed_on(session, fix))
        for fix, (text, where) in zip(fixes, words, strict=True)
    ]
    places = [where or built.get(fix.module) for fix, (_, where) in zip(fixes, words, strict=True)]
    where = next((place for place in places if place), built.get(port_module))
    return Fix("; ".join(dict.fromkeys(texts)), where, edits)


def _shown(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _handed_on(session: Session, fix: PortFix) -> str:
    """Which value of the port's a fix hands on, where that is no operand of the function itself."""
    source = fix.arguments.get("input")
    if fix.function != "identity" or not isinstance(source, str):
        return ""
    word, _, number = source.removeprefix("@").partition(".")
    if word == "event":
        of = dataclasses.replace(fix, target=f"event.{number}")
        line, where = session.port.ask(Fixes.edit_text, of)
        is_elsewhere = where is not None and where != session.port.ask(Fixes.edit_text, fix)[1]
        return f"the result of `{_shown(line)}` ({where})" if is_elsewhere else ""
    return {"input": "an input of the module", "pin": "the result of a module"}.get(word, "")


def _in_words(fix: PortFix, line: str, where: str | None, handed_on: str) -> str:
    """What should be computed, and in which code."""
    plain = [
        f"{name}={value!r}"
        for name, value in fix.arguments.items()
        if value is not None
        and isinstance(value, (int, float, str, bool))
        and not str(value).startswith("@")
        and not name.startswith("_")
    ]
    what = f"torch's {fix.function}({', '.join(['…', *plain])}) belongs here"
    if fix.function == "identity":
        what = "the value that goes in should come out as it is"
        if handed_on:
            what = f"{handed_on} belongs here as it is"
    if where is None:
        return f"the module that is built here should {line}" if line else what
    return f"`{_shown(line)}`: {what}"
