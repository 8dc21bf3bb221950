"""What a device holds when it holds most, and which module allocated it.

Every change of memory up to the peak has an owner: who ran when the block was allocated. Where
addresses are known, what frees a block takes its bytes off its owner, so that the bytes left are
those of the blocks alive. Without addresses, the last block of about that size is taken for it,
else the bytes come off who ran then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isograd.profile.analyse.nesting import parents
from isograd.profile.analyse.operators import operator_rows
from isograd.profile.model import Instants, MemoryPeak, MemoryShare, Phase, Profile
from isograd.profile.spans import Ints, Spans

#: What isograd's recorder writes around a call of a module, before the module's name.
MODULE_MARK = "isograd::module#"
#: torch's profiler writes this with `with_stack=True`, before the class and the number of a module.
_TORCH_MODULE = "nn.Module: "
_GRADIENT = "autograd::engine::evaluate_function: "
#: MindSpore's record adds up changes that follow closely: a block of megabytes with some of bytes.
SAME_SIZE = 0.01
#: Blocks among which one of that size is looked for, the last ones first.
MOST_BLOCKS = 1000
_UPDATES = ("Optimizer.step#", "isograd::update")


@dataclass(frozen=True)
class Owner:
    """Who allocates: a module (None outside of all), in a phase, by an operator."""

    module: str | None = None
    phase: Phase = Phase.OTHER
    operator: str = ""


def peak_of(memory: Instants, owners: Sequence[Owner]) -> MemoryPeak | None:
    """The peak of the device whose peak is greatest; None where nothing was allocated.

    owners: of each event, who ran then.
    """
    if not memory.time_ns.size or memory.total_bytes.max() <= 0:
        return None
    top = int(np.argmax(memory.total_bytes))
    number = -1 if memory.device is None else int(memory.device[top])
    rows = np.arange(memory.time_ns.size)
    if memory.device is not None:
        rows = rows[memory.device == number]
    before = int(memory.total_bytes[rows[0]] - memory.change_bytes[rows[0]])
    rows = rows[rows <= top]
    held = _alive(memory, rows, owners)
    by_module: defaultdict[tuple[str | None, Phase], defaultdict[str, int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for owner, size in held.items():
        by_module[owner.module, owner.phase][owner.operator] += size
    shares = [
        MemoryShare(module, phase, max(parts, key=lambda name: parts[name]), sum(parts.values()))
        for (module, phase), parts in by_module.items()
        if sum(parts.values()) > 0
    ]
    shares.sort(key=lambda share: -share.size_bytes)
    peak = int(memory.total_bytes[top])
    return MemoryPeak(
        peak_bytes=peak,
        before_bytes=max(before, 0),
        device="CPU" if number < 0 else f"device {number}",
        at=(owners[top].module, owners[top].phase),
        shares=tuple(shares),
    )


def _alive(memory: Instants, rows: Ints, owners: Sequence[Owner]) -> dict[Owner, int]:
    """Bytes by owner after the changes of these rows."""
    if memory.address is None or (memory.address < 0).any():
        return _alive_by_size(memory.change_bytes[rows], [owners[row] for row in rows])
    held: defaultdict[Owner, int] = defaultdict(int)
    owner_of: dict[int, Owner] = {}
    for row in rows:
        address, change = int(memory.address[row]), int(memory.change_bytes[row])
        if change >= 0:
            owner_of[address] = owner = owners[row]
        elif address in owner_of:
            owner = owner_of.pop(address)
        else:
            continue  # a block from before the first event
        held[owner] += change
    return held


def _alive_by_size(changes: Ints, owners: Sequence[Owner]) -> dict[Owner, int]:
    """The same without addresses: what is freed is the last block of about that size."""
    held: defaultdict[Owner, int] = defaultdict(int)
    blocks: list[tuple[int, Owner]] = []
    for change, owner in zip(map(int, changes), owners, strict=True):
        if change >= 0:
            blocks.append((change, owner))
        else:
            near = (
                place
                for place in range(len(blocks) - 1, max(len(blocks) - 1 - MOST_BLOCKS, -1), -1)
                if abs(blocks[place][0] + change) <= -change * SAME_SIZE
            )
            if (place := next(near, -1)) >= 0:
                owner = blocks.pop(place)[1]
        held[owner] += change
    return held


def with_held(peak: MemoryPeak, held: dict[str, int], *, is_counted: bool) -> MemoryPeak:
    """The peak with what the network held before; is_counted: the events' totals include it."""
    if is_counted:
        return replace(peak, held=held)
    before = sum(held.values())
    more = before - peak.before_bytes
    return replace(peak, held=held, before_bytes=before, peak_bytes=peak.peak_bytes + more)


def peak_of_trace(profile: Profile) -> MemoryPeak | None:
    """The peak by the memory events of a trace; None where it has none."""
    spans, memory = profile.spans, profile.memory
    if memory is None:
        return None
    if spans is None or memory.track is None:
        return peak_of(memory, [Owner()] * memory.time_ns.size)
    enclosing = parents(spans.track, spans.start_ns, spans.duration_ns)
    rows = _innermost(spans, enclosing, memory)
    named = _Owners(spans, enclosing)
    return peak_of(memory, [named.of(int(row)) for row in rows])


def _innermost(spans: Spans, enclosing: Ints, memory: Instants) -> Ints:
    """The row of the innermost span around each event, on its track, or -1."""
    assert memory.track is not None
    found = np.full(memory.time_ns.size, -1, dtype=np.int64)
    end = spans.start_ns + spans.duration_ns
    for track in np.unique(memory.track):
        events = np.flatnonzero(memory.track == track)
        first, last = np.searchsorted(spans.track, [track, track + 1])
        at = memory.time_ns[events]
        row = np.searchsorted(spans.start_ns[first:last], at, side="right") - 1
        row = np.where(row >= 0, row + first, -1)
        while (outside := (row >= 0) & (end[row] < at)).any():
            row[outside] = enclosing[row[outside]]
        found[events] = row
    return found


class _Owners:
    """Owners by the spans around an event: module, phase and operator of each row."""

    def __init__(self, spans: Spans, enclosing: Ints) -> None:
        self._spans, self._enclosing = spans, enclosing
        self._is_operator = np.zeros(len(spans), dtype=bool)
        self._is_operator[operator_rows(spans)] = True
        self._known: dict[int, Owner] = {-1: Owner()}
        rows, numbers = spans.sequence or ((), ())
        self._sequence = dict(zip(map(int, rows), map(int, numbers), strict=True))
        self._calls: dict[int, int] | None = None

    def of(self, row: int) -> Owner:
        """Who runs in a row; -1 is outside of all rows."""
        chain = []
        while row not in self._known:
            chain.append(row)
            row = int(self._enclosing[row])
        for inner in reversed(chain):
            self._known[inner] = self._inside(self._known[row], inner)
            row = inner
        return self._known[row]

    def _inside(self, outer: Owner, row: int) -> Owner:
        text = self._spans.texts[self._spans.name[row]]
        for mark in (MODULE_MARK, _TORCH_MODULE):
            if text.startswith(mark):
                phase = outer.phase if outer.phase is Phase.BACKWARD else Phase.FORWARD
                return Owner(text.removeprefix(mark), phase)
        if text.startswith(_GRADIENT):
            return Owner(self._module_of_call(row), Phase.BACKWARD, text.removeprefix(_GRADIENT))
        if text.startswith(_UPDATES):
            return Owner(None, Phase.UPDATE)
        if not outer.operator and self._is_operator[row]:
            return replace(outer, operator=text)
        return outer

    def _module_of_call(self, row: int) -> str | None:
        """The module whose call has this gradient: the last one with its sequence number."""
        if self._calls is None:
            self._calls = {}
            starts = self._spans.start_ns
            for other in sorted(self._sequence, key=lambda one: int(starts[one])):
                if not self._spans.texts[self._spans.name[other]].startswith(_GRADIENT):
                    if self._is_forward(other):
                        self._calls[self._sequence[other]] = other
        call = self._calls.get(self._sequence.get(row, -1))
        return None if call is None else self.of(call).module

    def _is_forward(self, row: int) -> bool:
        while row >= 0:
            if self._spans.texts[self._spans.name[row]].startswith(_GRADIENT):
                return False
            row = int(self._enclosing[row])
        return True
