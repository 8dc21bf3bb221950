"""The search for causes beside the reference's tensors, and the port's fixes."""

from __future__ import annotations

from typing import Any

from isograd.diagnose.decide import Diagnosis
from isograd.diagnose.subject import diagnose, diagnose_quietly, projected
from isograd.edits import SourceEdit
from isograd.frameworks.base import FunctionSite, Port, PortFix, Tensors, Trial
from isograd.frameworks.capabilities import Diagnosable, EditsSource, MendsOptimizer
from isograd.worker.protocols import Causes, Fixes
from isograd.worker.requests import DiagnosisRequest, SubjectRequest
from isograd.worker.services.base import FrameworkService
from isograd.worker.subject import FrameworkSubject, diagnosable, granted


class CauseService(FrameworkService, Causes):
    """Serves `Causes`."""

    def diagnose(self, request: DiagnosisRequest) -> Diagnosis:
        """Name the cause of the port's error in one call, or in the loss, or abstain."""
        return diagnose(
            self._subject(request.subject),
            request.port,
            request.wanted,
            request.surroundings,
            request.fixed,
            request.threshold,
            request.limit_s,
            request.likely,
        )

    def diagnose_quietly(self, request: DiagnosisRequest) -> Diagnosis:
        """Look for a small change within the noise of one call, by projection."""
        return diagnose_quietly(
            self._subject(request.subject),
            request.port,
            request.wanted,
            request.surroundings,
            request.threshold,
            request.limit_s,
        )

    def project(
        self,
        subject: SubjectRequest,
        port: Tensors,
        wanted: tuple[str, ...],
        trials: tuple[Trial, ...],
    ) -> tuple[float, float]:
        """How much of the change that trials make is in the port's error, and its deviation."""
        return projected(self._subject(subject), port, wanted, trials)

    def site_values(
        self, subject: SubjectRequest, trials: tuple[Trial, ...]
    ) -> tuple[FunctionSite, ...]:
        """The functions of one call, or of the loss, under trials, with their results."""
        return self._subject(subject).sites(trials, with_values=True)

    def grant(self, trials: tuple[Trial, ...], loss_trials: tuple[Trial, ...]) -> None:
        """Compute under these trials from now on, in every pass and step."""
        if not (trials or loss_trials) and self._as(Diagnosable) is None:
            return
        framework = diagnosable(self._framework)
        framework.interventions = granted(trials)
        framework.loss_interventions = granted(loss_trials)

    def _subject(self, subject: SubjectRequest) -> FrameworkSubject:
        return FrameworkSubject(self._framework, subject.request, subject.outputs, subject.targets)


class FixService(FrameworkService, Fixes):
    """Serves `Fixes`."""

    def fix_for(self, module: str, function: str, argument: str, value: Any) -> PortFix | None:
        """How a setting of a torch function is made on a library module; None if it has none."""
        port = self._as(Port)
        return port.fix_for(module, function, argument, value) if port is not None else None

    def edit_text(self, fix: PortFix) -> tuple[str, str | None]:
        """The edit that a fix makes, in words, and ``file:line``."""
        port = self._as(Port)
        return port.edit_text(fix) if port is not None else ("", None)

    def edits(self, fixes: tuple[PortFix, ...]) -> tuple[SourceEdit, ...]:
        """The edits that fixes mean; empty where the framework has none to show."""
        editing = self._as(EditsSource)
        return editing.edits(fixes) if editing is not None else ()

    def mend_optimizer(self, mending: dict[str, Any]) -> bool:
        """From the next training the port's optimizer is mended so; whether that is possible."""
        mends = self._as(MendsOptimizer)
        if mends is not None:
            mends.mend_optimizer(mending)
        return mends is not None

    def leave_untouched(self, names: list[str]) -> None:
        """The reference computes no gradient for these parameters of the port."""
        mends = self._as(MendsOptimizer)
        if mends is not None:
            mends.leave_untouched(names)

    def optimizer_line(self) -> str | None:
        """``file:line`` of the user's code that made the port's optimizer last."""
        mends = self._as(MendsOptimizer)
        return mends.optimizer_line if mends is not None else None

    def optimizer_kind(self) -> str:
        """The framework's class of the port's optimizer that was made last, as `nn.Adam`."""
        mends = self._as(MendsOptimizer)
        return mends.optimizer_kind if mends is not None else ""

    def optimizer_edits(self, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
        """The edits that give the port's optimizer these settings, by the fields of a rule."""
        mends = self._as(MendsOptimizer)
        return mends.optimizer_edits(settings) if mends is not None else ()
