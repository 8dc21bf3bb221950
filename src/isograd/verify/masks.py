"""Whether masks are drawn along the same axes: for each sample, each channel or each element.

While networks are compared every draw is a constant, so that a stochastic depth that drops single
elements instead of whole samples looks right.  Where the two sides of a unit draw different
numbers of numbers, the unit runs with real chance, and what stays together is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import CallInfo, DropoutSite, MaskDraw
from isograd.model import Cause, Finding, Fix, Severity, Stage
from isograd.tensors import TensorKey
from isograd.verify.places import Places, Slots
from isograd.verify.rates import FALSE_ALARM, chance_of_equal_rates
from isograd.verify.replay import Replayer, forward_only
from isograd.verify.session import Session
from isograd.verify.unit_result import UnitResult
from isograd.verify.units import Unit
from isograd.worker.protocols import Chance

#: Pairs of runs: a part that stays in half of the first side's and in none of the other's differs
#: at 1e-6 after 24 of them, one that stays in 0.9 and in 0.5 after 110.
_PAIRS = 128
_MOST_AXES = 5
_SEED = 2718

_Draws = tuple[MaskDraw, ...]
#: What draws on each side: line, function and shape.
_Kind = tuple[tuple[tuple[str | None, str, tuple[int, ...]], ...], ...]
_Starts = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Drawn:
    """A unit whose two sides draw different numbers of numbers."""

    unit: Unit
    reference: _Draws
    port: _Draws

    @property
    def kind(self) -> _Kind:
        """Units of one kind draw the same by the same lines: one of them is run."""
        return _kind(self.reference), _kind(self.port)


def _kind(draws: _Draws) -> tuple[tuple[str | None, str, tuple[int, ...]], ...]:
    return tuple((draw.where, draw.function, draw.shape) for draw in draws)


def mask_findings(
    session: Session, replayer: Replayer, mode: str, units: Sequence[Unit]
) -> Iterator[tuple[int, Finding]]:
    """The units whose masks are drawn along other axes, with their places in the network."""
    pending = session.reference.begin(Chance.mask_draws)
    theirs = session.port.ask(Chance.mask_draws)
    ours = pending.answer()
    if not ours or not theirs:
        return
    judged: dict[_Kind, bool] = {}
    for drawn in _differing(units, replayer, ours, theirs):
        if drawn.kind not in judged:
            judged[drawn.kind] = _differs(session, replayer, drawn.unit)
        if judged[drawn.kind]:
            yield drawn.unit.reference, _finding(replayer, mode, drawn)


def _differing(
    units: Sequence[Unit], replayer: Replayer, ours: _Draws, theirs: _Draws
) -> Iterator[_Drawn]:
    for unit in units:
        reference = _own(replayer.reference_calls, ours, unit.reference, {r for r, _ in unit.pins})
        port = _own(replayer.port_calls, theirs, unit.port, {p for _, p in unit.pins})
        if reference and port and _sizes(reference) != _sizes(port):
            yield _Drawn(unit, reference, port)


def _own(calls: Sequence[CallInfo], draws: _Draws, call: int, pins: set[int]) -> _Draws:
    """The draws of a call's code, without those inside its pins."""
    found = []
    for draw in draws:
        inside: int | None = draw.call
        while inside is not None and inside != call and inside not in pins:
            inside = calls[inside].parent
        if inside == call:
            found.append(draw)
    return tuple(found)


def _sizes(draws: _Draws) -> list[int]:
    return sorted(math.prod(draw.shape) for draw in draws)


def _differs(session: Session, replayer: Replayer, unit: Unit) -> bool:
    """Whether real chance leaves other parts of the unit's tensors the same."""
    try:
        result = replayer.run_aside(unit)
        if result.requests is None or result.places is None:
            return False
        ours, theirs = _starts(result, result.places)
        request, port_request = map(forward_only, result.requests)
        pending = session.reference.begin(Chance.equal_pairs, request, ours, _PAIRS, _SEED)
        found = session.port.ask(Chance.equal_pairs, port_request, theirs, _PAIRS, _SEED)
        expected = pending.answer()
    except IsogradError as error:
        module = replayer.reference_calls[unit.reference].module or "the network"
        session.note_unanswered(f"whether {module} draws its masks as the reference", error)
        return False
    tests = sum(map(len, expected.values()))
    return any(
        chance_of_equal_rates(_site(first), _site(second)) < FALSE_ALARM / tests
        for (_, counts), (_, others) in zip(expected.items(), found.items(), strict=True)
        for first, second in zip(counts, others, strict=True)
    )


def _starts(result: UnitResult, places: Places) -> tuple[_Starts, _Starts]:
    """Where each floating tensor is greatest without chance, under both sides' names.

    Tensors that the two sides lay out otherwise are left out.
    """
    ours: _Starts = {}
    theirs: _Starts = {}
    for first, second in _same_layout(places):
        values = result.reference[first].values if first in result.reference else None
        if values is None or not values.size or values.ndim > _MOST_AXES:
            continue
        if np.issubdtype(values.dtype, np.floating):
            start = np.unravel_index(np.argmax(np.abs(np.nan_to_num(values))), values.shape)
            ours[first] = theirs[second] = tuple(map(int, start))
    return ours, theirs


def _same_layout(places: Places) -> Iterator[tuple[TensorKey, TensorKey]]:
    yield from _in_slots(places.outputs, None)
    for pin, slots in enumerate(places.pin_inputs):
        yield from _in_slots(slots, pin)


def _in_slots(slots: Slots, pin: int | None) -> Iterator[tuple[TensorKey, TensorKey]]:
    for ours, theirs, layout in slots:
        if layout.reference_shape == layout.port_shape:
            yield _key(pin, ours), _key(pin, theirs)


def _key(pin: int | None, slot: int) -> TensorKey:
    return TensorKey.output(slot) if pin is None else TensorKey.input_of_pin(pin, slot)


def _site(count: int) -> DropoutSite:
    return DropoutSite("", 0, count / _PAIRS, 0.0, _PAIRS)


def _finding(replayer: Replayer, mode: str, drawn: _Drawn) -> Finding:
    call = replayer.reference_calls[drawn.unit.reference]
    ours, theirs = _words(drawn.reference), _words(drawn.port)
    text = f"masks are drawn from {theirs} numbers instead of {ours}"
    advice = f"draw masks of the shape {ours} here, as the reference does"
    where = drawn.port[0].where
    return Finding(
        "forward.mask",
        Severity.EFFECTIVE,
        Stage.FORWARD,
        call.module,
        f"in {mode} mode chance drops other parts together: the reference draws {ours} numbers, "
        f"the port {theirs}",
        mode=mode,
        cause=Cause("random.mask", ours, theirs, text=text),
        fix=None if where is None else Fix(advice, where),
    )


def _words(draws: _Draws) -> str:
    """The shapes that are drawn: ``8 × 1 × 1``."""
    return " and ".join(dict.fromkeys(" × ".join(map(str, d.shape)) or "1" for d in draws))
