"""What is replayed alone: every paired call, with its paired children's results given.

Replaying a call with its children pinned tests just the code between them.  If every call agrees
so, the whole network agrees: each child gets the inputs and returns the results of the
reference, so nothing is carried from one call into the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isograd.frameworks.base import CallInfo

#: Of a module that is called more often (a cell in a loop over time), this many calls are replayed.
_MOST_CALLS = 32


@dataclass(frozen=True)
class Unit:
    """A pair of calls, by index, and the pairs of calls inside it that are pinned."""

    reference: int
    port: int
    pins: tuple[tuple[int, int], ...]


def make_units(
    reference: Sequence[CallInfo],
    port: Sequence[CallInfo],
    pairs: Sequence[tuple[int, int]],
) -> tuple[Unit, ...]:
    """A unit for each pair of calls, in the reference's order."""
    partner = dict(pairs)
    return tuple(make_unit(reference, port, partner, call) for call in sorted(partner))


def make_unit(
    reference: Sequence[CallInfo],
    port: Sequence[CallInfo],
    partner: dict[int, int],
    call: int,
) -> Unit:
    """The unit of one paired call: its nearest paired descendants on both sides are pinned."""
    port_call = partner[call]
    nearest = [
        (r, p)
        for r, p in partner.items()
        if _between(reference, r, call) is not None and _between(port, p, port_call) is not None
    ]
    inside_reference = {r for r, _ in nearest}
    inside_port = {p for _, p in nearest}
    pins = [
        (r, p)
        for r, p in nearest
        if not inside_reference.intersection(_between(reference, r, call) or ())
        and not inside_port.intersection(_between(port, p, port_call) or ())
    ]
    return Unit(call, port_call, tuple(sorted(pins)))


def _between(calls: Sequence[CallInfo], inner: int, outer: int) -> tuple[int, ...] | None:
    """The calls strictly between two nested calls; None where they are not nested."""
    path: list[int] = []
    current = calls[inner].parent
    while current is not None:
        if current == outer:
            return tuple(path)
        path.append(current)
        current = calls[current].parent
    return None


def last_descendant(calls: Sequence[CallInfo], call: int) -> int:
    """The index of the last call that happens inside this one, or its own."""
    last = call
    for index in range(call + 1, len(calls)):
        if _between(calls, index, call) is None:
            break
        last = index
    return last


def enclosing(calls: Sequence[CallInfo], partner: dict[int, int], call: int) -> int | None:
    """The nearest paired call around this one."""
    current = calls[call].parent
    while current is not None and current not in partner:
        current = calls[current].parent
    return current


def evenly_spread(units: Sequence[Unit], calls: Sequence[CallInfo]) -> tuple[list[Unit], list[str]]:
    """All units, but of a module that is called very often only some, and a note of each such.

    calls: those of the reference.
    """
    by_module: dict[str, list[Unit]] = {}
    for unit in units:
        by_module.setdefault(calls[unit.reference].module, []).append(unit)
    chosen: set[int] = set()
    notes: list[str] = []
    for module, own in by_module.items():
        if len(own) > _MOST_CALLS:
            places = {round(i * (len(own) - 1) / (_MOST_CALLS - 1)) for i in range(_MOST_CALLS)}
            notes.append(
                f"{module} is called {len(own)} times; {len(places)} of the calls were "
                "replayed alone"
            )
            own = [own[place] for place in sorted(places)]
        chosen.update(unit.reference for unit in own)
    return [unit for unit in units if unit.reference in chosen], notes
