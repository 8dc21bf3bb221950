"""The isolated part of the stages forward, backward and training, in one mode.

Every paired call is replayed alone.  What differs becomes a finding of the module that owns the
code between the pinned calls; differences that only follow from another one are not findings.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

from isograd.diagnose.decide import Diagnosis
from isograd.frameworks.base import CallInfo, Trial
from isograd.model import Cause, Finding, Fix, Gap, ModuleRatio, Severity, Stage
from isograd.noise.envelope import ISOLATED_THRESHOLD
from isograd.pairing.calls import pair_calls
from isograd.pairing.modules import pair_modules
from isograd.pairing.results import ModulePairing
from isograd.tensors import Role, TensorKey
from isograd.verify.boundaries import Boundaries
from isograd.verify.call_similarity import call_similarity
from isograd.verify.confirm import Claim, Confirmation
from isograd.verify.culprit import Culprit, find_culprit
from isograd.verify.isolated_result import IsolatedResult
from isograd.verify.masks import mask_findings
from isograd.verify.parameters import fix_at
from isograd.verify.replay import Replayer
from isograd.verify.session import Session
from isograd.verify.unit_causes import UnitCauses
from isograd.verify.unit_finding import UnitFinding
from isograd.verify.unit_result import TensorResult, UnitResult, undecided_gaps
from isograd.verify.units import Unit, enclosing, evenly_spread, make_unit, make_units
from isograd.worker.protocols import Networks, Passes

_CODES = {
    Stage.FORWARD: "forward.output",
    Stage.BACKWARD: "backward.gradient",
    Stage.TRAINING: "training.statistics",
}


class IsolatedStage:
    """Replays all units of a recorded pass and draws the conclusions.

    replayer, causes: what it replays and diagnoses with, for those who look at single units.
    """

    def __init__(self, session: Session, mode: str, backward: bool) -> None:
        self._session = session
        self._mode = mode
        self._backward = backward
        self._reference: tuple[CallInfo, ...] = session.reference.ask(Passes.calls)
        self._port: tuple[CallInfo, ...] = session.port.ask(Passes.calls)
        self.replayer = Replayer(
            session,
            mode,
            backward,
            self._reference,
            self._port,
            ISOLATED_THRESHOLD,
            session.reference.ask(Passes.borrowed) if backward else {},
        )
        self.causes = UnitCauses(session, self.replayer, mode)
        self._kinds = {m.name: m.kind for m in session.reference_structure.modules}
        self._port_is_library = {m.name: m.library for m in session.port_structure.modules}
        self._partner: dict[int, int] = {}
        self._result = IsolatedResult()
        self._claims: list[Claim] = []

    @property
    def notes(self) -> list[str]:
        """What a person should know of how the units were chosen and judged."""
        return self._result.notes

    def run(self) -> IsolatedResult:
        """Pair the calls, replay every unit, and judge."""
        units = self.units()
        progress = self._session.progress

        def show(number: int, unit: Unit) -> None:
            module = self._reference[unit.reference].module or "the network"
            progress.advance(number, len(units), f"{module} ({self._mode} mode)")

        results = self._without_unneeded(self._replay(units, show))
        failed = [result for result in results if self.fails(result)]
        self.replayer.settle()
        if failed:
            results = self.with_borders_moved(results, failed)
        for result in results:
            self._conclude(result)
        self._result.granted = tuple(self.causes.granted)
        for position, finding in mask_findings(
            self._session, self.replayer, self._mode, [result.unit for result in results]
        ):
            self._result.found.append(UnitFinding(finding, position))
        self._confirm()
        return self._result

    def _confirm(self) -> None:
        """Repeat the proofs on other batches; what they do not confirm is a name only."""
        confirmation = Confirmation(
            self._session, self.replayer, self.causes, self._mode, self._backward
        )
        for claim in confirmation.refused(self._claims) if self._claims else ():
            for one in claim.findings:
                if one.finding.cause is not None:
                    one.change(cause=dataclasses.replace(one.finding.cause, proved=False))

    def _without_unneeded(self, results: list[UnitResult]) -> list[UnitResult]:
        """Drop inputs that the port's calls do without, where these calls agree: inner ones first.

        Where such a call differs, what it lacks stays a finding of the code that calls it.
        """
        agreeing: set[int] = set()
        judged = []
        for result in sorted(results, key=lambda result: -result.unit.reference):
            needed = result.without_unneeded(agreeing)
            if not self.fails(needed):
                agreeing.add(needed.unit.reference)
            judged.append(needed)
        return judged[::-1]

    def units(self) -> list[Unit]:
        """Pair the calls, and choose those that are replayed."""
        self._partner = dict(self._pair())
        pairs = sorted(self._partner.items())
        units = make_units(self._reference, self._port, pairs)
        contains = self._session.part.contains
        inside = [u for u in units if contains(self._reference[u.reference].module)]
        chosen, notes = evenly_spread(inside, self._reference)
        self._result.notes.extend(notes)
        return chosen

    def _replay(self, units: Sequence[Unit], show: Callable[[int, Unit], None]) -> list[UnitResult]:
        """Replay units; after a crash the port starts again with the next one."""
        results: list[UnitResult] = []
        while len(results) < len(units):
            done = len(results)
            for result in self.replayer.run(
                units[done:], functools.partial(_show_from, show, done)
            ):
                if self.fails(result):
                    results.append(result)
                else:
                    self._look_below_noise(result)
                    results.append(result.brief())
                if result.crashed:
                    self.replayer.settle()
                    self._restart()
                    break
        return results

    def _look_below_noise(self, result: UnitResult) -> dict[str, UnitFinding]:
        """A finding where a small change hides in the noise of coarse arithmetic: by its cause."""
        if self._mode != self._session.case.modes[0]:
            return {}
        known = self.causes.diagnose_quietly(result)
        if known is None:
            return {}
        tensors = [t for t in result.tensors if t.stage is Stage.FORWARD and t.comparison]
        found = self._find_causes(Stage.FORWARD, result, tensors, known, (), quiet=True)
        for one in found:
            one.quiet = tuple(cause.trial for cause in known.causes)
            one.change(severity=Severity.BELOW_NOISE)
        return {cause.name: one for cause, one in zip(known.causes, found, strict=True)}

    @staticmethod
    def fails(result: UnitResult) -> bool:
        """Whether a unit differs by more than the noise, or could not be replayed."""
        return bool(result.failure) or any(
            not t.ratio <= ISOLATED_THRESHOLD for t in result.tensors
        )

    def with_borders_moved(
        self, results: list[UnitResult], failed: list[UnitResult]
    ) -> list[UnitResult]:
        """Free the pairs whose borders the port draws elsewhere, and judge what is around them."""
        boundaries = Boundaries(
            self._session, self.replayer, self._reference, self._port, ISOLATED_THRESHOLD
        )
        partner, changed = boundaries.free(self._partner, failed)
        freed = [self._reference[call].module for call in self._partner if call not in partner]
        if not freed:
            return results
        self._partner = partner
        self._session.moved_borders.update(freed)
        names = ", ".join(dict.fromkeys(filter(None, freed)))
        self._result.notes.append(
            f"the port divides {names} into modules otherwise; judged together with what is "
            "around them"
        )
        kept = [r for r in results if r.unit.reference in partner]
        return [
            self.replayer.run_aside(
                make_unit(self._reference, self._port, partner, result.unit.reference)
            )
            if result.unit.reference in changed
            else result
            for result in kept
        ]

    def _pair(self) -> Iterable[tuple[int, int]]:
        session = self._session
        reference = dataclasses.replace(session.reference_structure, calls=self._reference)
        port = dataclasses.replace(session.port_structure, calls=self._port)
        modules: ModulePairing = pair_modules(reference, port, session.pairing)
        similarity = call_similarity(session, self._reference, self._port)
        return pair_calls(reference, port, modules, similarity)

    def _restart(self) -> None:
        session = self._session
        session.rebuild_port()
        session.port.ask(
            Networks.load_state, session.transfer(session.reference.ask(Networks.state))
        )
        session.port.ask(Passes.forward, session.pass_request(self._mode, record=True))

    def _conclude(self, result: UnitResult) -> None:
        call = self._reference[result.unit.reference]
        if result.failure:
            self._failed(result)
            return
        for tensor in result.tensors:
            self._result.checked[tensor.stage] = self._result.checked.get(tensor.stage, 0) + 1
        self._note_ratios(result)
        self._result.gaps += undecided_gaps(result, call.module or "the network", self._mode)
        if self._explain(result) and result.backward_failure:
            self._result.gaps.append(
                Gap(Stage.BACKWARD, f"the backward pass of {call.module}", result.backward_failure)
            )

    def _explain(self, result: UnitResult) -> bool:
        """Findings stage after stage, each beyond the causes of those before.

        Whether each stage was looked at: what follows from an unexplained one is none of its own.
        """
        call = self._reference[result.unit.reference]
        wrong = [t for t in result.tensors if not t.ratio <= ISOLATED_THRESHOLD]
        quiet: dict[str, UnitFinding] = {}
        if wrong and all(t.stage is not Stage.FORWARD for t in wrong):
            quiet = self._look_below_noise(result)
        fixed: tuple[Trial, ...] = ()
        for stage in (Stage.FORWARD, Stage.BACKWARD, Stage.TRAINING):
            found = [t for t in wrong if t.stage is stage]
            if not found:
                continue
            known = self.causes.diagnose(result, stage, fixed)
            names = {cause.name for cause in known.causes} if known is not None else set()
            if names and names <= set(quiet):
                for name in names:
                    quiet[name].is_loud = True
                self._follow(found)
                continue
            if known is not None and known.causes:
                self._find_causes(stage, result, found, known, fixed)
            elif stage is Stage.FORWARD and self._explained_around(result):
                self._follow(wrong)
                return False
            else:
                self._find(stage, call, found, result)
            if stage is not Stage.FORWARD:
                continue
            if known is None or not known.causes:
                self._follow(wrong)
                return False
            # Beyond a named cause: what still differs when it is granted is a fault of its own.
            fixed = tuple(cause.trial for cause in known.causes)
            apart = result.places.joined_keys() if result.places else set()
            ratios = {k: r for k, r in known.ratios.items() if k not in apart}
            self._follow([t for t in wrong if ratios.get(t.key, 0.0) <= ISOLATED_THRESHOLD])
            wrong = [t for t in wrong if ratios.get(t.key, 0.0) > ISOLATED_THRESHOLD]
        return True

    def _explained_around(self, result: UnitResult) -> bool:
        """Look for causes where the reference makes what the port's call makes itself."""
        partner = dict(self._partner)
        own = self._reference[result.unit.reference].module
        while result.places is not None and result.places.makes_own:
            call = result.unit.reference
            around = enclosing(self._reference, partner, call)
            if around is None:
                return False
            del partner[call]
            unit = make_unit(self._reference, self._port, partner, around)
            result = self.replayer.run_aside(unit)
        wrong = [t for t in result.tensors if not t.ratio <= ISOLATED_THRESHOLD]
        wrong = [t for t in wrong if t.stage is Stage.FORWARD]
        if len(partner) == len(self._partner) or not wrong:
            return False
        known = self.causes.diagnose(result, Stage.FORWARD, (), without=own)
        if known is None or not known.causes:
            return False
        self._find_causes(Stage.FORWARD, result, wrong, known, ())
        return True

    def _follow(self, tensors: Sequence[TensorResult]) -> None:
        """Count what differs only because of a forward difference in the same module."""
        following = self._result.following
        for tensor in tensors:
            if tensor.stage is not Stage.FORWARD:
                following[tensor.stage] = following.get(tensor.stage, 0) + 1

    def _note_ratios(self, result: UnitResult) -> None:
        call = self._reference[result.unit.reference]
        port = self._port[result.unit.port].module
        for stage in (Stage.FORWARD, Stage.BACKWARD, Stage.TRAINING):
            ratios = [t.ratio for t in result.tensors if t.stage is stage]
            if ratios:
                worst = max(ratios)
                shown = worst if math.isfinite(worst) else None
                kind = self._kinds.get(call.module, "")
                self._result.modules.append(
                    ModuleRatio(call.module, kind, port, stage, shown, self._mode)
                )

    def _failed(self, result: UnitResult) -> None:
        call = self._reference[result.unit.reference]
        theirs = self._port[result.unit.port]
        if call.output_shapes != theirs.output_shapes and not result.crashed:
            message = (
                f"the port cannot compute on the reference's inputs ({result.failure}); in its own "
                f"run it yields shapes {_shapes(theirs.output_shapes)} where the reference yields "
                f"{_shapes(call.output_shapes)}"
            )
            finding = self._finding(Stage.FORWARD, call, message, None, None)
            self._result.found.append(UnitFinding(finding, result.unit.reference))
            return
        name = call.module or "the network"
        self._result.gaps.append(Gap(Stage.FORWARD, f"{name} alone", result.failure))

    def culprit(self, result: UnitResult, stage: Stage) -> Culprit | None:
        """The function of the module's own code that differs; library modules have no such."""
        if stage is not Stage.FORWARD:
            return None
        call = self._reference[result.unit.reference]
        library = {m.name: m.library for m in self._session.reference_structure.modules}
        if result.requests is None or (library.get(call.module) and not result.unit.pins):
            return None
        self.replayer.settle()
        return find_culprit(self._session, *result.requests)

    def _find(
        self, stage: Stage, call: CallInfo, wrong: list[TensorResult], result: UnitResult
    ) -> None:
        """A finding that no hypothesis explains."""
        culprit = self.culprit(result, stage)
        first, message = self._described(stage, call, wrong)
        if culprit is not None and not first.problem:  # a wrong shape says enough
            message += f"; the first function to differ is {culprit.function}"
            message += f" ({culprit.where})" if culprit.where else ""
            if culprit.module != call.module:
                call = dataclasses.replace(call, module=culprit.module, occurrence=0)
        cause, fix = self._in_half(result, wrong) if stage is Stage.FORWARD else (None, None)
        self._add(stage, call, wrong, first, message, cause, fix or self._look_at(first, culprit))

    def _in_half(
        self, result: UnitResult, wrong: list[TensorResult]
    ) -> tuple[Cause | None, Fix | None]:
        """The cause and fix where the port computes in sixteen bits; they cannot be granted."""
        errors = [t.comparison.evidence for t in wrong if t.comparison is not None]
        found = self.causes.in_half(result, errors) if len(errors) == len(wrong) else None
        if found is None:
            return None, None
        self._result.can_grant = False
        return found

    def _look_at(self, first: TensorResult, culprit: Culprit | None) -> Fix | None:
        """Where to look, if nothing is proved: the line of the port at which the tensors part."""
        if culprit is not None and culprit.port_where is not None:
            return Fix(
                f"here the port parts from the reference's {culprit.function}", culprit.port_where
            )
        called = _pin_of(first.key)
        call = self._port[first.unit.port if called is None else first.unit.pins[called][1]]
        name = call.module or "the network"
        if called is not None and call.where is not None:
            return Fix(f"the port calls {name} here", call.where)
        if self._port_is_library.get(call.module):
            return fix_at(self._session, call.module, f"the port builds {name} here")
        if call.where is not None:
            return Fix(f"the port calls {name} here", call.where)
        return fix_at(self._session, call.module, f"the port builds {name} here")

    def _find_causes(
        self,
        stage: Stage,
        result: UnitResult,
        wrong: list[TensorResult],
        known: Diagnosis,
        fixed: tuple[Trial, ...],
        quiet: bool = False,
    ) -> list[UnitFinding]:
        """A finding for each cause."""
        call = self._reference[result.unit.reference]
        first, message = self._described(stage, call, wrong)
        if quiet:
            first = max(wrong, key=lambda t: t.ratio if math.isfinite(t.ratio) else 0.0)
            message = f"{first.what} differs by less than the rounding noise, but not at random"
        causes, fix, fixes = self.causes.prove(result, stage, known, fixed, quiet)
        if fix is None and not quiet:
            fix = self._look_at(first, self.culprit(result, stage))
        found: list[UnitFinding] = []
        for named, cause in zip(known.causes, causes, strict=True):
            module = self.causes.module_of(named, result)
            place = (
                call
                if module == call.module
                else dataclasses.replace(call, module=module, occurrence=0)
            )
            found.append(self._add(stage, place, wrong, first, message, cause, fix))
        if fixes:
            trials = tuple(cause.trial for cause in known.causes) if quiet else ()
            self._claims.append(Claim(result.unit, stage, fixes, trials, tuple(found)))
        return found

    def _described(
        self, stage: Stage, call: CallInfo, wrong: list[TensorResult]
    ) -> tuple[TensorResult, str]:
        """The tensor that a finding shows, and what it says of it."""
        first = min(wrong, key=lambda t: t.position)
        if stage is not Stage.FORWARD:
            first = max(wrong, key=lambda t: t.ratio if math.isfinite(t.ratio) else 0.0)
        more = f" ({len(wrong)} tensors of this module differ)" if len(wrong) > 1 else ""
        message = f"{first.what} differs{more}"
        if first.problem:
            message = f"{first.what} has {first.problem}"
        if first.unit.pins and stage is Stage.FORWARD:
            message = f"the code of {call.module or 'the network'} between its modules: {message}"
        return first, message

    def _add(
        self,
        stage: Stage,
        call: CallInfo,
        wrong: list[TensorResult],
        first: TensorResult,
        message: str,
        cause: Cause | None = None,
        fix: Fix | None = None,
    ) -> UnitFinding:
        port_module = self._port[first.unit.port].module
        ratio = first.ratio if math.isfinite(first.ratio) else None
        finding = self._finding(stage, call, message, ratio, first, port_module)
        finding = dataclasses.replace(finding, cause=cause, fix=fix or finding.fix)
        shift = first if stage is Stage.FORWARD else None
        gradients = wrong if stage is Stage.BACKWARD else []
        found = UnitFinding(finding, first.position, shift, gradients)
        self._result.found.append(found)
        return found

    def _finding(
        self,
        stage: Stage,
        call: CallInfo,
        message: str,
        ratio: float | None,
        tensor: TensorResult | None,
        port_module: str = "",
    ) -> Finding:
        if call.occurrence and ratio is not None:
            message += f" (call {call.occurrence + 1} of the module)"
        return Finding(
            _CODES[stage],
            Severity.EFFECTIVE,
            stage,
            call.module,
            message,
            ratio,
            0,
            self._mode,
            tensor.comparison.evidence if tensor and tensor.comparison else None,
            fix=fix_at(self._session, port_module, "the port builds this module here"),
        )


def _pin_of(key: str) -> int | None:
    """Which pinned call a tensor goes into; None for what leaves the unit."""
    found = TensorKey(key)
    return found.pin if found.role is Role.INPUT_OF_PIN else None


def _show_from(show: Callable[[int, Unit], None], done: int, number: int, unit: Unit) -> None:
    show(done + number, unit)


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(str(s) for s in shapes) or "none"
