"""What is diagnosed, in the reference's worker: one call alone, or the loss alone, under trials."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isograd.diagnose.library import all_hypotheses
from isograd.errors import UsageError
from isograd.frameworks.base import (
    Arithmetic,
    Framework,
    FunctionSite,
    Intervention,
    ReplayRequest,
    Tensors,
    Trial,
)
from isograd.frameworks.capabilities import Diagnosable, declares
from isograd.tensors import TensorValue


def granted(trials: Sequence[Trial]) -> tuple[Intervention, ...]:
    """Trials as interventions that an adapter can make."""
    library = all_hypotheses()
    return tuple(
        Intervention(trial.place, library[trial.hypothesis].change, trial.values)
        for trial in trials
    )


def diagnosable(framework: Framework) -> Diagnosable:
    """The framework as one that can be diagnosed; raises `UsageError` where it is none."""
    found: object = framework
    if not declares(found, Diagnosable):
        raise UsageError(
            f"{framework.name} does not show its functions, so no cause can be looked for",
            "Declare isograd.frameworks.capabilities.Diagnosable in the adapter.",
        )
    return found


@contextlib.contextmanager
def under(
    framework: Framework, trials: Sequence[Trial], *, is_loss: bool = False
) -> Iterator[None]:
    """Make trials in an adapter's passes, on top of what is granted, until the block ends."""
    changed = diagnosable(framework)
    before = changed.interventions, changed.loss_interventions
    try:
        if is_loss:
            changed.loss_interventions = (*before[1], *granted(trials))
        else:
            changed.interventions = (*before[0], *granted(trials))
        yield
    finally:
        changed.interventions, changed.loss_interventions = before


@dataclass(frozen=True)
class FrameworkSubject:
    """Runs one call, or the loss, under hypotheses (`isograd.diagnose.subject.Subject`).

    framework: the reference's adapter; request: the call, or None for the loss.
    """

    framework: Framework
    request: ReplayRequest | None
    outputs: list[TensorValue | None]
    targets: list[Any]

    def run(self, trials: Sequence[Trial], arithmetic: Arithmetic, backward: bool) -> Tensors:
        """The subject's tensors under trials, on top of what is granted for good.

        returns: the shapes of the call's tensors; float64 for the floating ones in that arithmetic,
        else their own dtypes.
        """
        with under(self.framework, trials, is_loss=self.request is None):
            if self.request is None:
                return self.framework.loss(self.outputs, self.targets, arithmetic)
            request = replace(self.request, backward=backward and self.request.backward)
            return self.framework.replay(request, arithmetic)

    def sites(
        self, trials: Sequence[Trial] = (), with_values: bool = False
    ) -> tuple[FunctionSite, ...]:
        """The functions that it calls."""
        shown = diagnosable(self.framework)
        with under(self.framework, trials, is_loss=self.request is None):
            if self.request is None:
                return shown.loss_sites(self.outputs, self.targets, with_values)
            return shown.sites(self.request, with_values)
