"""What a worker does beyond the framework protocol: measure envelopes next to the tensors.

An envelope needs a dozen passes over the same tensors; they stay in the worker, and only the
float64 result and one number per tensor cross the pipe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from isograd.diagnose.decide import Diagnosis
from isograd.diagnose.subject import Subject, diagnose, diagnose_quietly, granted, projected, under
from isograd.edits import SourceEdit
from isograd.frameworks import kernels
from isograd.frameworks.base import (
    FLOAT64,
    Arithmetic,
    Floors,
    FunctionSite,
    PortFix,
    ReplayRequest,
    Tensors,
    Trial,
    in_slots,
)
from isograd.frameworks.registry import open_framework
from isograd.metrics import difference
from isograd.noise.envelope import errors_against
from isograd.tensors import TensorValue, tensor_value
from isograd.worker.batch import batch_of

_OWN = (
    "build describe state load_state forward calls recorded replay trace loss start_training "
    "end_training dropout_sites draws draws_by_hand keep_scale fix_for edit_text trace_loss"
).split()


_STATIC_GRAPH = (
    "asks once start_steps step record alone loss_alone statements code_of alone_rewritten"
).split()


class Service:
    """Answers requests by name; an unknown name is an error."""

    def __init__(self, framework: str) -> None:
        self._framework: Any = open_framework(framework)

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Run one request."""
        if method in _OWN:
            return getattr(self._framework, method)(*arguments)
        own: Callable[..., Any] | None = getattr(self, f"do_{method}", None)
        if own is None:
            raise ValueError(f"unknown request {method!r}")
        return own(*arguments)

    def do_set_floors(self, floors: Floors) -> None:
        """Give the device profile's noise floors to the framework."""
        self._framework.floors = dict(floors)

    def do_measure_kernel(
        self,
        expression: str,
        inputs: Tensors,
        labels: Tensors,
        variants: list[Arithmetic],
        floors: Floors,
    ) -> dict[str, list[Any]]:
        """A micro-benchmark of the device profile in torch, with its envelope."""

        def run(arithmetic: Arithmetic) -> Tensors:
            return kernels.run_torch(expression, inputs, labels, arithmetic, floors)

        return _measure(run, variants)

    def do_run_kernel(self, expression: str, inputs: Tensors, labels: Tensors) -> Tensors:
        """The same micro-benchmark in MindSpore; nothing where this build has no such kernel."""
        try:
            return kernels.run_mindspore(expression, inputs, labels)
        except Exception:  # a kernel that this device lacks has no floor
            return {}

    def do_batch(
        self, key: str, name: str, folder: str, seed: int, step: int
    ) -> tuple[list[Any], dict[str, Any]]:
        """What a callable of the case returns for a step: positional and keyword arguments."""
        return batch_of(key, name, folder, seed, step)

    def do_forward_options(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        record: bool,
        backward: bool,
    ) -> Tensors:
        """`forward` with its keyword options."""
        found: Tensors = self._framework.forward(
            mode, inputs, targets, record=record, backward=backward
        )
        return found

    def do_measure_forward(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        variants: list[Arithmetic],
    ) -> dict[str, list[Any]]:
        """End to end in float64, and the errors of the native variants against it."""

        def run(arithmetic: Arithmetic) -> Tensors:
            found: Tensors = self._framework.forward(
                mode, inputs, targets, backward=backward, arithmetic=arithmetic
            )
            return found

        return _measure(run, variants)

    def do_measure_unit(
        self,
        call: int,
        pins: list[int],
        parameters: list[str],
        buffers: list[str],
        backward: bool,
        variants: list[Arithmetic],
        silent: list[int],
        pins_silent: list[list[int]],
    ) -> dict[str, Any]:
        """One call alone in float64, the errors of the variants, and what was fed in.

        silent, pins_silent: outputs, and inputs of each pinned call, through which nothing flows
        back, because the port has none such.
        """
        own = self._framework.recorded(call)
        request = self._request(call, own, pins, parameters, buffers, backward)
        request = replace(
            request,
            output_cotangents=_silenced(request.output_cotangents, silent),
            pin_cotangents=tuple(map(_silenced, request.pin_cotangents, pins_silent)),
        )
        raw = _measure(lambda a: self._framework.replay(request, a), variants)
        without = _without_gradient(own, raw)
        return {"request": request, "measured": {k: v for k, v in raw.items() if k not in without}}

    def _request(
        self,
        call: int,
        own: Tensors,
        pins: list[int],
        parameters: list[str],
        buffers: list[str],
        backward: bool,
    ) -> ReplayRequest:
        children = [self._framework.recorded(pin) for pin in pins]
        seed = (call, len(pins))
        return ReplayRequest(
            call,
            tuple(pins),
            in_slots(own, "input"),
            tuple(in_slots(child, "output") for child in children),
            _cotangents(own, "output", seed) if backward else (),
            tuple(_cotangents(c, "input", (*seed, i)) for i, c in enumerate(children))
            if backward
            else (),
            tuple(parameters),
            tuple(buffers),
            backward,
        )

    def do_borrowed(self) -> dict[str, tuple[str, ...]]:
        """Parameters that a module's code reads though another holds them, of the last pass."""
        borrowed = getattr(self._framework, "borrowed", None)
        found: dict[str, tuple[str, ...]] = borrowed() if borrowed is not None else {}
        return found

    def do_measure_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        variants: list[Arithmetic],
    ) -> dict[str, list[Any]]:
        """The loss alone in float64, and the errors of the native variants against it."""
        return _measure(lambda a: self._framework.loss(outputs, targets, a), variants)

    def do_train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None,
        kinds: list[str],
    ) -> Tensors:
        """One training step; of what it yields the named kinds: loss, gradient, state.

        A large network's tensors take longer through the pipe than through an optimizer.
        """
        found: Tensors = self._framework.train_step(track, state, inputs, targets, gradients)
        return {name: value for name, value in found.items() if name.partition(".")[0] in kinds}

    def do_measure_step(
        self,
        tracks: list[str],
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None,
    ) -> dict[str, list[Any]]:
        """One training step on the first track, and the errors of the other tracks against it."""

        def run(track: str) -> Tensors:
            found: Tensors = self._framework.train_step(
                track, state, inputs, targets, gradients, lent=True
            )
            empty = getattr(self._framework, "empty_track", None)
            if empty is not None and state is not None:
                empty(track, state)
            return found

        reference = run(tracks[0])
        return errors_against(reference, (run(track) for track in tracks[1:]))

    def do_shifted(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: tuple[int, str, list[TensorValue | None]],
    ) -> dict[str, float]:
        """How far an end-to-end pass moves when one call's tensors are shifted: norms by name."""
        plain = self._framework.forward(mode, inputs, targets, backward=backward)
        moved = self._framework.forward_shifted(mode, inputs, targets, backward, shift)
        return _distances(plain, moved)

    def do_reached(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: tuple[int, str, list[TensorValue | None]],
    ) -> dict[str, float]:
        """How far the same moves an exact pass, state included: relative to each tensor's norm."""

        def run(shift: tuple[int, str, list[TensorValue | None]]) -> Tensors:
            found: Tensors = self._framework.forward_shifted(
                mode, inputs, targets, backward, shift, FLOAT64
            )
            return found

        plain = run((shift[0], shift[1], []))
        sizes = {key: float(np.linalg.norm(value.values)) for key, value in plain.items()}
        return {
            key: distance / sizes[key] if sizes[key] else distance
            for key, distance in _distances(plain, run(shift)).items()
        }

    def do_moved(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        trials: tuple[Trial, ...],
    ) -> dict[str, float]:
        """How far an exact end-to-end pass moves under trials: norms by name."""

        def run() -> Tensors:
            found: Tensors = self._framework.forward(
                mode, inputs, targets, backward=backward, arithmetic=FLOAT64
            )
            return found

        plain = run()
        with under(self._framework, trials):
            return _distances(plain, run())

    def do_watch_update(self, track: str, indices: Tensors) -> None:
        """Note these elements when gradients are fed; a framework without rules notes nothing."""
        watch = getattr(self._framework, "watch_update", None)
        if watch is not None:
            watch(track, indices)

    def do_update_outline(self) -> dict[str, Any]:
        """The rules of the reference's optimizer by parameter; empty where it has none to show."""
        outline = getattr(self._framework, "update_outline", None)
        found: dict[str, Any] = outline() if outline is not None else {}
        return found

    def do_update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients."""
        found: Tensors = self._framework.update_slices(names)
        return found

    def do_measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Other optimizer rules on the watched elements, with their envelope."""
        found: Tensors = self._framework.measure_rules(rules, variants, keep, dtype)
        return found

    def do_grant_rules(self, rules: dict[str, dict[str, Any]]) -> None:
        """From the next training these parameters of the reference follow these rules."""
        grant = getattr(self._framework, "grant_rules", None)
        if grant is not None:
            grant(rules)

    def do_mend_optimizer(self, mending: dict[str, Any]) -> bool:
        """From the next training the port's optimizer is mended so; whether that is possible."""
        mend = getattr(self._framework, "mend_optimizer", None)
        if mend is not None:
            mend(mending)
        return mend is not None

    def do_leave_untouched(self, names: list[str]) -> None:
        """Tell a port which parameters get no gradient in the reference."""
        leave = getattr(self._framework, "leave_untouched", None)
        if leave is not None:
            leave(names)

    def do_optimizer_line(self) -> str | None:
        """``file:line`` of the user's code that made the port's optimizer last."""
        found: str | None = getattr(self._framework, "optimizer_line", None)
        return found

    def do_optimizer_kind(self) -> str:
        """The framework's class of the port's optimizer that was made last, as `nn.Adam`."""
        return str(getattr(self._framework, "optimizer_kind", ""))

    def do_optimizer_edits(self, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
        """The edits that give the port's optimizer these settings, by the fields of a rule."""
        edits = getattr(self._framework, "optimizer_edits", None)
        found: tuple[SourceEdit, ...] = edits(settings) if edits is not None else ()
        return found

    def do_diagnose(
        self,
        request: ReplayRequest | None,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        port: Tensors,
        wanted: tuple[str, ...],
        context: dict[str, Any],
        fixed: tuple[Trial, ...],
        threshold: float,
        limit_s: float,
        likely: tuple[str, ...],
    ) -> Diagnosis:
        """Name the cause of the port's error in one call, or in the loss where request is None."""
        subject = Subject(self._framework, request, outputs, targets)
        return diagnose(subject, port, wanted, context, fixed, threshold, limit_s, likely)

    def do_diagnose_quietly(
        self,
        request: ReplayRequest,
        port: Tensors,
        wanted: tuple[str, ...],
        context: dict[str, Any],
        threshold: float,
        limit_s: float,
    ) -> Diagnosis:
        """Look for a small change within the noise of one call, by projection."""
        subject = Subject(self._framework, request, [], [])
        return diagnose_quietly(subject, port, wanted, context, threshold, limit_s)

    def do_project(
        self,
        request: ReplayRequest,
        port: Tensors,
        wanted: tuple[str, ...],
        trials: tuple[Trial, ...],
    ) -> tuple[float, float]:
        """How much of the change that trials make is in the port's error, and its deviation."""
        subject = Subject(self._framework, request, [], [])
        return projected(subject, port, wanted, trials)

    def do_site_values(
        self,
        request: ReplayRequest | None,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        trials: tuple[Trial, ...],
    ) -> tuple[FunctionSite, ...]:
        """The functions of one call, or of the loss, under trials, with their results."""
        subject = Subject(self._framework, request, outputs, targets)
        return subject.sites(trials, with_values=True)

    def do_static_graph(self, method: str, arguments: list[Any]) -> Any:
        """A request to the port under the static graph (`frameworks/mindspore/static_graph`)."""
        if method not in _STATIC_GRAPH:
            raise ValueError(f"unknown request {method!r} of the static graph")
        return getattr(self._framework, method)(*arguments)

    def do_edits(self, fixes: tuple[PortFix, ...]) -> tuple[SourceEdit, ...]:
        """The edits of the port's source that fixes stand for; empty where it has none to show."""
        edits = getattr(self._framework, "edits", None)
        found: tuple[SourceEdit, ...] = edits(fixes) if edits is not None else ()
        return found

    def do_grant(self, trials: tuple[Trial, ...], loss_trials: tuple[Trial, ...]) -> None:
        """Compute under these trials from now on, in every pass and step."""
        self._framework.interventions = granted(trials)
        self._framework.loss_interventions = granted(loss_trials)


def _distances(plain: Tensors, moved: Tensors) -> dict[str, float]:
    return {
        key: math.inf if found.pattern_mismatches else found.error
        for key, value in plain.items()
        if key in moved
        for found in [difference(value.values, moved[key].values)]
    }


def _cotangents(
    tensors: Tensors, word: str, seed: tuple[int, ...]
) -> tuple[TensorValue | None, ...]:
    """The recorded gradients, or random ones where none arrived: a dead branch is tested too."""
    result: list[TensorValue | None] = []
    for slot, value in enumerate(in_slots(tensors, word)):
        gradient = tensors.get(f"gradient.{word}.{slot}")
        if not value.is_floating:
            result.append(None)
        elif gradient is not None and gradient.shape == value.shape and usable(gradient.values):
            result.append(gradient)
        else:
            drawn = np.random.default_rng((*seed, slot)).standard_normal(value.shape)
            result.append(tensor_value(drawn.astype(np.float32)))
    return tuple(result)


def usable(gradient: Any) -> bool:
    """Whether a recorded gradient can be fed in again: finite, and not zero throughout."""
    return bool(np.isfinite(gradient).all() and np.any(gradient))


def _without_gradient(recorded: Tensors, replayed: Collection[str]) -> set[str]:
    """The replayed gradients of inputs into which none flows in the network, beside others.

    A mask is such an input: attention may use it or compute the same from `is_causal`.
    """
    flowing = {key for key in recorded if key.startswith("gradient.input.")}
    if not flowing:
        return set()
    return {key for key in replayed if key.startswith("gradient.input.")} - flowing


def _measure(
    run: Callable[[Arithmetic], Tensors], variants: list[Arithmetic]
) -> dict[str, list[Any]]:
    reference = run(FLOAT64)
    return errors_against(reference, (run(variant) for variant in variants))


def _silenced(
    values: tuple[TensorValue | None, ...], silent: list[int]
) -> tuple[TensorValue | None, ...]:
    """The tensors, with zeros in some slots."""
    return tuple(
        TensorValue(np.zeros_like(value.values), value.dtype)
        if value is not None and i in silent
        else value
        for i, value in enumerate(values)
    )
