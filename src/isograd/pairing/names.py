"""Pairing by name: what is called the same, by convention, is the same.

Two habits of porters make equal names lie, and both are looked for here: a wrapper adds or drops
a level for a part of the network, and a dropped activation renumbers a Sequential.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from isograd.pairing.conventions import stem_and_number
from isograd.pairing.slots import (
    Key,
    Slot,
    by_key,
    role_transforms,
    singles_of,
    strict_signature,
)
from isograd.pairing.transforms import Transform

#: Wrapper levels that are looked for, and the depth to which they are.
MAXIMAL_WRAPPERS = 4
MAXIMAL_WRAPPER_DEPTH = 3


@dataclass(frozen=True, eq=False)
class SlotPair:
    """Two slots that are one; transforms: (reference's role, port's role) -> transform."""

    reference: Slot
    port: Slot
    how: str
    transforms: Mapping[tuple[str, str], Transform]


class NumberedNames:
    """Which keys can be trusted: those whose numbers mean the same on both sides.

    Children ``0, 2, 5`` against ``0, 1, 2`` were renumbered, so an equal number says nothing
    there; ``0, 1, 2`` against ``0, 1`` lack a child and keep their numbers.
    """

    def __init__(self, reference: Iterable[Slot], port: Iterable[Slot]) -> None:
        self._reference = _numbers([slot.key for slot in reference])
        self._port = _numbers([slot.key for slot in port])

    def trusts(self, key: Key) -> bool:
        """Whether every number in the key means the same on both sides."""
        for position, component in enumerate(key):
            stem, number = stem_and_number(component)
            if not number:
                continue
            here = self._reference.get((key[:position], stem), set())
            there = self._port.get((key[:position], stem), set())
            if not (here <= there or there <= here):
                return False
        return True


def _numbers(keys: Iterable[Key]) -> dict[tuple[Key, str], set[str]]:
    numbers: dict[tuple[Key, str], set[str]] = defaultdict(set)
    for key in keys:
        for position, component in enumerate(key):
            stem, number = stem_and_number(component)
            if number:
                numbers[key[:position], stem].add(number)
    return numbers


def _called_the_same(reference: list[Slot], port: list[Slot]) -> Iterator[tuple[Slot, Slot]]:
    """The slots of equal keys, where their names are to be trusted."""
    trust = NumberedNames(reference, port)
    port_by_key = by_key(port)
    for key, slot in by_key(reference).items():
        partner = port_by_key.get(key)
        if partner is not None and trust.trusts(key):
            yield slot, partner


def pair_by_name(reference: list[Slot], port: list[Slot]) -> list[SlotPair]:
    """Pairs of slots with equal trusted keys and shapes that fit."""
    pairs = []
    for slot, partner in _called_the_same(reference, port):
        transforms = role_transforms(slot, partner, same_name=True)
        if transforms is not None:
            pairs.append(SlotPair(slot, partner, "name", transforms))
    return pairs


def pair_parts_by_name(reference: list[Slot], port: list[Slot]) -> list[SlotPair]:
    """Pairs of what is called the same in layers of which one lacks the weight of that name.

    A weight that is computed is not stored: the bias beside it keeps its name all the same.
    """
    pairs = []
    for slot, partner in _called_the_same(reference, port):
        if slot.main_role in partner.parts and partner.main_role in slot.parts:
            continue
        others = {single.main_role: single for single in singles_of(partner)}
        for single in singles_of(slot):
            other = others.get(single.main_role)
            if other is None or single.shapes != other.shapes:
                continue
            transforms = role_transforms(single, other, same_name=True)
            if transforms is not None:
                pairs.append(SlotPair(single, other, "name", transforms))
    return pairs


def without_wrappers(reference: list[Slot], port: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    """The slots with keys from which one-sided levels are dropped, where that unites names."""
    united = _united(reference, port)
    for _ in range(MAXIMAL_WRAPPERS):
        if united == min(len(reference), len(port)):
            break
        best: tuple[int, list[Slot], list[Slot]] = (united, reference, port)
        for shorter in _with_one_level_dropped(reference):
            best = max(best, (_united(shorter, port), shorter, port), key=lambda found: found[0])
        for shorter in _with_one_level_dropped(port):
            best = max(
                best, (_united(reference, shorter), reference, shorter), key=lambda found: found[0]
            )
        if best[0] == united:
            break
        united, reference, port = best
    return reference, port


def _united(reference: list[Slot], port: list[Slot]) -> int:
    signatures = {slot.key: strict_signature(slot) for slot in reference}
    return sum(signatures.get(slot.key) == strict_signature(slot) for slot in port)


def _with_one_level_dropped(slots: list[Slot]) -> Iterable[list[Slot]]:
    prefixes: dict[Key, int] = {}
    for slot in slots:
        for depth in range(1, min(MAXIMAL_WRAPPER_DEPTH, len(slot.key) - 1) + 1):
            prefix = slot.key[:depth]
            prefixes[prefix] = prefixes.get(prefix, 0) + 1
    for prefix, count in prefixes.items():
        if stem_and_number(prefix[-1])[1] or count == 1:
            continue
        shorter = [
            replace(slot, key=prefix[:-1] + slot.key[len(prefix) :])
            if slot.key[: len(prefix)] == prefix and len(slot.key) > len(prefix)
            else slot
            for slot in slots
        ]
        if len({slot.key for slot in shorter}) == len({slot.key for slot in slots}):
            yield shorter
