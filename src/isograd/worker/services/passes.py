"""Whole passes and recorded calls alone, with their envelopes beside the tensors.

An envelope needs a dozen passes over the same tensors; they stay in the worker, and only the
float64 result and one number per tensor cross the pipe.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from isograd.errors import UsageError, UserCodeError
from isograd.frameworks.base import (
    FLOAT64,
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    FunctionCall,
    MaskDraw,
    Port,
    PortFix,
    ReplayRequest,
    Shift,
    Tensors,
    Trial,
    in_slots,
)
from isograd.frameworks.capabilities import BorrowsParameters, DrawsMasks
from isograd.frameworks.draws import equal_pairs
from isograd.metrics import difference
from isograd.noise.envelope import Errors, errors_against
from isograd.tensors import Array, Role, TensorKey, TensorValue, tensor_value
from isograd.worker.protocols import Chance, Passes, Reach
from isograd.worker.requests import PassRequest, UnitMeasured, UnitRequest
from isograd.worker.services.base import FrameworkService
from isograd.worker.subject import under

_Variant = TypeVar("_Variant")


class PassService(FrameworkService, Passes, Reach, Chance):
    """Serves `Passes`, `Reach` and `Chance`."""

    def forward(self, request: PassRequest) -> Tensors:
        """One end-to-end pass."""
        return self._forward(request)

    def _forward(self, request: PassRequest, arithmetic: Arithmetic = NATIVE) -> Tensors:
        return self._framework.forward(
            request.mode,
            request.inputs,
            request.targets,
            record=request.record,
            backward=request.backward,
            arithmetic=arithmetic,
        )

    def measure_forward(
        self, request: PassRequest, variants: tuple[Arithmetic, ...]
    ) -> dict[str, Errors]:
        """End to end in float64, and the errors of the native variants against it."""
        return errors_of(lambda arithmetic: self._forward(request, arithmetic), variants)

    def calls(self) -> tuple[CallInfo, ...]:
        """The calls of the recorded pass."""
        return self._framework.calls()

    def recorded(self, call: int) -> Tensors:
        """A recorded call's tensors."""
        return self._framework.recorded(call)

    def borrowed(self) -> dict[str, tuple[str, ...]]:
        """Parameters that a module's code reads though another holds them, of the last pass."""
        seeing = self._as(BorrowsParameters)
        return seeing.borrowed() if seeing is not None else {}

    def measure_unit(self, request: UnitRequest, variants: tuple[Arithmetic, ...]) -> UnitMeasured:
        """One call alone in float64, the errors of the variants, and what was fed in."""
        own = self._framework.recorded(request.call)
        replayed = self._fed(request, own)
        errors = errors_of(lambda a: self._framework.replay(replayed, a), variants)
        without = _without_gradient(own, errors)
        return UnitMeasured(replayed, {k: v for k, v in errors.items() if k not in without})

    def _fed(self, request: UnitRequest, own: Tensors) -> ReplayRequest:
        """The replay with what was recorded, and with gradients that are fed in."""
        children = [self._framework.recorded(pin) for pin in request.pins]
        seed = (request.call, len(request.pins))
        output: tuple[TensorValue | None, ...] = ()
        into_pins: tuple[tuple[TensorValue | None, ...], ...] = ()
        if request.backward:
            output = _cotangents(own, "output", seed)
            into_pins = tuple(
                _cotangents(child, "input", (*seed, i)) for i, child in enumerate(children)
            )
        return ReplayRequest(
            request.call,
            request.pins,
            in_slots(own, "input"),
            tuple(in_slots(child, "output") for child in children),
            _silenced(output, request.silent),
            tuple(map(_silenced, into_pins, request.pins_silent)),
            request.parameters,
            request.buffers,
            request.backward,
        )

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """Run one recorded call again, alone; with fixes in a port."""
        if fixes:
            return self._fixable.replay(request, arithmetic, fixes)
        return self._framework.replay(request, arithmetic)

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        """The functions that one recorded call runs, without those inside its pins."""
        return self._framework.trace(request)

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[Any],
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """The loss of given outputs and its gradient; with fixes in a port."""
        if fixes:
            return self._fixable.loss(outputs, targets, NATIVE, fixes)
        return self._framework.loss(outputs, targets)

    def measure_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[Any],
        variants: tuple[Arithmetic, ...],
    ) -> dict[str, Errors]:
        """The loss alone in float64, and the errors of the native variants against it."""
        return errors_of(lambda a: self._framework.loss(outputs, targets, a), variants)

    def trace_loss(
        self, outputs: list[TensorValue | None], targets: list[Any]
    ) -> tuple[FunctionCall, ...]:
        """The functions that a port's loss runs."""
        return self._fixable.trace_loss(outputs, targets)

    @property
    def _fixable(self) -> Port:
        port = self._as(Port)
        if port is None:
            raise UsageError(
                f"{self._framework.name} cannot be changed for a proof",
                "Declare isograd.frameworks.base.Port in the adapter.",
            )
        return port

    def shifted(self, request: PassRequest, shift: Shift) -> dict[str, float]:
        """How far an end-to-end pass moves when one call's tensors are shifted: norms by name."""
        return _distances(self._forward(request), self._shifted(request, shift))

    def reached(self, request: PassRequest, shift: Shift) -> dict[str, float]:
        """How far the same moves an exact pass, state included: relative to each tensor's norm."""
        plain = self._shifted(request, replace(shift, values=[]), FLOAT64)
        moved = self._shifted(request, shift, FLOAT64)
        sizes = {key: float(np.linalg.norm(value.values)) for key, value in plain.items()}
        return {
            key: distance / sizes[key] if sizes[key] else distance
            for key, distance in _distances(plain, moved).items()
        }

    def _shifted(
        self, request: PassRequest, shift: Shift, arithmetic: Arithmetic = NATIVE
    ) -> Tensors:
        return self._framework.forward_shifted(
            request.mode, request.inputs, request.targets, request.backward, shift, arithmetic
        )

    def moved(self, request: PassRequest, trials: tuple[Trial, ...]) -> dict[str, float]:
        """How far an exact end-to-end pass moves under trials: norms by name."""
        plain = self._forward(request, FLOAT64)
        with under(self._framework, trials):
            return _distances(plain, self._forward(request, FLOAT64))

    def dropout_sites(
        self, mode: str, seed: int = 0, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[DropoutSite, ...]:
        """What the dropouts would do in this mode, by experiment; with fixes in a port."""
        if fixes:
            return self._fixable.dropout_sites(mode, seed, fixes)
        return self._framework.dropout_sites(mode, seed)

    def draws(self) -> tuple[str, ...]:
        """The random functions that the recorded pass called, dropouts apart."""
        return self._framework.draws()

    def draws_by_hand(self) -> bool:
        """Whether it draws uniform or Bernoulli numbers outside the dropouts."""
        return self._framework.draws_by_hand()

    def mask_draws(self) -> tuple[MaskDraw, ...]:
        """The numbers that it draws; empty where the framework cannot see them."""
        seeing = self._as(DrawsMasks)
        return seeing.mask_draws() if seeing is not None else ()

    def equal_pairs(
        self,
        request: ReplayRequest,
        kinds: tuple[str, ...],
        starts: dict[str, tuple[int, ...]],
        partners: dict[str, tuple[int, ...]],
        pairs: int,
        seed: int,
    ) -> dict[str, tuple[int, ...]]:
        """Of pairs of replays with real chance, how many agree: see `frameworks/draws.py`."""
        drawing = self._as(DrawsMasks)
        assert drawing is not None, "asked only where masks were seen"
        run = partial(drawing.replay_with_chance, request, frozenset(kinds))
        return equal_pairs(run, starts, pairs, seed, partners)


def errors_of(
    run: Callable[[Arithmetic], Tensors], variants: Sequence[Arithmetic]
) -> dict[str, Errors]:
    """A run in float64, and the errors of the native variants against it."""
    return errors_against(run(FLOAT64), valid_runs(run, variants))


def valid_runs(
    run: Callable[[_Variant], Tensors], variants: Sequence[_Variant]
) -> Iterator[Tensors]:
    """The runs of the variants; the first is the program as it is, and must not raise.

    Noise may leave a domain that the program checks (a probability just above 1): such a run says
    nothing.
    """
    yield from map(run, variants[:1])
    for variant in variants[1:]:
        with contextlib.suppress(UserCodeError):
            yield run(variant)


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
        gradient = tensors.get(TensorKey(f"{word}.{slot}").gradient)
        if not value.is_floating:
            result.append(None)
        elif gradient is not None and gradient.shape == value.shape and usable(gradient.values):
            result.append(gradient)
        else:
            drawn = np.random.default_rng((*seed, slot)).standard_normal(value.shape)
            result.append(tensor_value(drawn.astype(np.float32)))
    return tuple(result)


def usable(gradient: Array) -> bool:
    """Whether a recorded gradient can be fed in again: finite, and not all zero.

    gradient: any shape and float dtype.
    """
    return bool(np.isfinite(gradient).all() and np.any(gradient))


def _without_gradient(recorded: Tensors, replayed: Collection[str]) -> set[TensorKey]:
    """The replayed gradients of inputs into which none flows in the network, beside others.

    A mask is such an input: attention may use it or compute the same from `is_causal`.
    """
    flowing = {key for key in map(TensorKey, recorded) if _is_gradient_of_input(key)}
    if not flowing:
        return set()
    return {key for key in map(TensorKey, replayed) if _is_gradient_of_input(key)} - flowing


def _is_gradient_of_input(key: TensorKey) -> bool:
    return key.is_gradient and key.role is Role.INPUT


def _silenced(
    values: tuple[TensorValue | None, ...], silent: Collection[int]
) -> tuple[TensorValue | None, ...]:
    """The tensors, with zeros in some slots."""
    return tuple(
        TensorValue(np.zeros_like(value.values), value.dtype)
        if value is not None and i in silent
        else value
        for i, value in enumerate(values)
    )
