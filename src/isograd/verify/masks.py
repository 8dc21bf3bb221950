"""Whether masks and noise are drawn along the same axes: by sample, by channel or by element.

While networks are compared every draw is a constant, so that a stochastic depth that drops single
elements instead of whole samples looks right, and so does noise that all samples share.  Where the
two sides of a unit draw different numbers of numbers, the unit runs with real chance: what stays
together is counted, and what changes in the same direction.  Masks and noise are let rule one at a
time, because beside noise nothing ever stays the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import CallInfo, DropoutSite, MaskDraw
from isograd.frameworks.kinds import MASKS, NOISE
from isograd.model import Cause, Finding, Fix, Severity, Stage
from isograd.tensors import Array, TensorKey
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
_Family = tuple[tuple[tuple[str | None, str, tuple[int, ...]], ...], ...]
_Starts = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Drawn:
    """A unit whose two sides draw different numbers of numbers of these kinds."""

    unit: Unit
    reference: _Draws
    port: _Draws
    kinds: tuple[str, ...]

    @property
    def family(self) -> _Family:
        """Units of one family draw the same by the same lines: one of them is run."""
        return _lines(self.reference), _lines(self.port)


def _lines(draws: _Draws) -> tuple[tuple[str | None, str, tuple[int, ...]], ...]:
    return tuple((draw.where, draw.function, draw.shape) for draw in draws)


def mask_findings(
    session: Session, replayer: Replayer, mode: str, units: Sequence[Unit]
) -> Iterator[tuple[int, Finding]]:
    """The units that draw masks or noise along other axes, with their places in the network."""
    pending = session.reference.begin(Chance.mask_draws)
    theirs = session.port.ask(Chance.mask_draws)
    ours = pending.answer()
    if not ours or not theirs:
        return
    judged: dict[_Family, bool] = {}
    for drawn in _differing(units, replayer, ours, theirs):
        if drawn.family not in judged:
            judged[drawn.family] = _differs(session, replayer, drawn)
        if judged[drawn.family]:
            yield drawn.unit.reference, _finding(replayer, mode, drawn)


def _differing(
    units: Sequence[Unit], replayer: Replayer, ours: _Draws, theirs: _Draws
) -> Iterator[_Drawn]:
    for unit in units:
        reference = _own(replayer.reference_calls, ours, unit.reference, {r for r, _ in unit.pins})
        port = _own(replayer.port_calls, theirs, unit.port, {p for _, p in unit.pins})
        counts = [Counter(draw.kind for draw in draws) for draws in (reference, port)]
        # One side may make its noise of the numbers of which masks are made else.
        alone: list[tuple[str, ...]] = [(kind,) for kind in sorted(counts[0])]
        alone = alone if counts[0] == counts[1] else []
        for kinds in alone or [(MASKS, NOISE)]:
            ours_ = tuple(draw for draw in reference if draw.kind in kinds)
            theirs_ = tuple(draw for draw in port if draw.kind in kinds)
            if ours_ and theirs_ and _sizes(ours_) != _sizes(theirs_):
                yield _Drawn(unit, ours_, theirs_, kinds)


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


def _differs(session: Session, replayer: Replayer, drawn: _Drawn) -> bool:
    """Whether real chance leaves other parts of the unit's tensors the same, or moves others."""
    kinds = drawn.kinds
    try:
        result = replayer.run_aside(drawn.unit)
        if result.requests is None or result.places is None:
            return False
        (ours, theirs), (beside, besides) = _starts(result, result.places)
        request, port_request = map(forward_only, result.requests)
        pending = session.reference.begin(
            Chance.equal_pairs, request, kinds, ours, beside, _PAIRS, _SEED
        )
        found = session.port.ask(
            Chance.equal_pairs, port_request, kinds, theirs, besides, _PAIRS, _SEED
        )
        expected = pending.answer()
    except IsogradError as error:
        module = replayer.reference_calls[drawn.unit.reference].module or "the network"
        what = "noise" if NOISE in kinds else "masks"
        session.note_unanswered(f"whether {module} draws its {what} as the reference", error)
        return False
    tests = sum(map(len, expected.values()))
    return any(
        chance_of_equal_rates(_site(first), _site(second)) < FALSE_ALARM / tests
        for (_, counts), (_, others) in zip(expected.items(), found.items(), strict=True)
        for first, second in zip(counts, others, strict=True)
    )


def _starts(
    result: UnitResult, places: Places
) -> tuple[tuple[_Starts, _Starts], tuple[_Starts, _Starts]]:
    """Where each floating tensor is greatest without chance, under both sides' names.

    Then, for each axis, where it is greatest along the axis besides.  Tensors that the two sides
    lay out otherwise are left out.
    """
    ours: _Starts = {}
    theirs: _Starts = {}
    beside: _Starts = {}
    besides: _Starts = {}
    for first, second in _same_layout(places):
        values = result.reference[first].values if first in result.reference else None
        if values is None or not values.size or values.ndim > _MOST_AXES:
            continue
        if np.issubdtype(values.dtype, np.floating):
            sizes = np.abs(np.nan_to_num(values))
            start = tuple(map(int, np.unravel_index(np.argmax(sizes), values.shape)))
            ours[first] = theirs[second] = start
            beside[first] = besides[second] = _partners(sizes, start)
    return (ours, theirs), (beside, besides)


def _partners(sizes: Array, start: tuple[int, ...]) -> tuple[int, ...]:
    """The greatest other place along each axis; the start itself where there is no other."""
    found = []
    for axis, place in enumerate(start):
        line = np.moveaxis(sizes, axis, -1)[start[:axis] + start[axis + 1 :]].astype(np.float64)
        line[place] = -1.0
        found.append(int(np.argmax(line)))
    return tuple(found)


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
    odd = _odd_ones(drawn.port, drawn.reference)
    ours, theirs = _words(_odd_ones(drawn.reference, drawn.port)), _words(odd)
    is_noise = NOISE in drawn.kinds
    text = f"masks are drawn from {theirs} numbers instead of {ours}"
    advice = f"draw masks of the shape {ours} here, as the reference does"
    effect = "drops other parts together"
    if is_noise:
        text = f"random numbers are drawn in the shape {theirs} instead of {ours}"
        advice = f"draw random numbers of the shape {ours} here, as the reference does"
        effect = "moves other parts together"
    where = odd[0].where
    return Finding(
        "forward.noise" if is_noise else "forward.mask",
        Severity.EFFECTIVE,
        Stage.FORWARD,
        call.module,
        f"in {mode} mode chance {effect}: the reference draws {ours} numbers, the port {theirs}",
        mode=mode,
        cause=Cause("random.noise" if is_noise else "random.mask", ours, theirs, text=text),
        fix=None if where is None else Fix(advice, where),
    )


def _odd_ones(draws: _Draws, others: _Draws) -> _Draws:
    """The draws that have no partner of the same size among the others; all where none lacks it."""
    left, odd = _sizes(others), []
    for draw in draws:
        size = math.prod(draw.shape)
        if size in left:
            left.remove(size)
        else:
            odd.append(draw)
    return tuple(odd) or draws


def _words(draws: _Draws) -> str:
    """The shapes that are drawn: ``8 × 1 × 1``."""
    return " and ".join(dict.fromkeys(" × ".join(map(str, d.shape)) or "1" for d in draws))
