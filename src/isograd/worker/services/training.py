"""Optimizer steps on tracks, and rules of optimizers on watched elements."""

from __future__ import annotations

from typing import Any

from isograd.frameworks.base import NATIVE, Arithmetic, Tensors
from isograd.frameworks.capabilities import EmptiesTracks, ReplaysRules
from isograd.noise.envelope import Errors, errors_against
from isograd.worker.protocols import Rules, Training
from isograd.worker.requests import StepRequest
from isograd.worker.services.base import FrameworkService
from isograd.worker.services.passes import valid_runs


class TrainingService(FrameworkService, Training, Rules):
    """Serves `Training` and `Rules`."""

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        """Make a fresh optimizer over a copy of the network; the names that it updates."""
        return self._framework.start_training(track, arithmetic)

    def end_training(self) -> None:
        """Drop all tracks."""
        self._framework.end_training()

    def train_step(self, track: str, request: StepRequest, kinds: tuple[str, ...]) -> Tensors:
        """One step; of what it yields the named kinds: loss, gradient, state.

        A large network's tensors take longer through the pipe than through an optimizer.
        """
        found = self._step(track, request)
        return {name: value for name, value in found.items() if name.partition(".")[0] in kinds}

    def _step(self, track: str, request: StepRequest, *, lent: bool = False) -> Tensors:
        return self._framework.train_step(
            track, request.state, request.inputs, request.targets, request.gradients, lent=lent
        )

    def measure_step(self, tracks: tuple[str, ...], request: StepRequest) -> dict[str, Errors]:
        """One step on the first track, and the errors of the other tracks against it."""
        emptying = self._as(EmptiesTracks)

        def run(track: str) -> Tensors:
            found = self._step(track, request, lent=True)
            if emptying is not None and request.state is not None:
                emptying.empty_track(track, request.state)
            return found

        reference = run(tracks[0])
        return errors_against(reference, valid_runs(run, tracks[1:]))

    def watch_update(self, track: str, indices: Tensors) -> None:
        """Note these elements when gradients are fed; a framework without rules notes nothing."""
        replaying = self._as(ReplaysRules)
        if replaying is not None:
            replaying.watch_update(track, indices)

    def update_outline(self) -> dict[str, Any]:
        """The rules of the reference's optimizer by parameter; empty where it has none to show."""
        replaying = self._as(ReplaysRules)
        return replaying.update_outline() if replaying is not None else {}

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients."""
        replaying = self._as(ReplaysRules)
        return replaying.update_slices(names) if replaying is not None else {}

    def measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Other optimizer rules on the watched elements, with their envelope."""
        replaying = self._as(ReplaysRules)
        return replaying.measure_rules(rules, variants, keep, dtype) if replaying else {}

    def grant_rules(self, rules: dict[str, dict[str, Any]]) -> None:
        """From the next training these parameters of the reference follow these rules."""
        replaying = self._as(ReplaysRules)
        if replaying is not None:
            replaying.grant_rules(rules)
