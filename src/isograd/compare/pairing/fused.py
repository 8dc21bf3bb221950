"""Fused projections: one side keeps query, key and value in one matrix, the other in several.

The several are put together into one slot of the shape of the fused one; from there on it is
paired like any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from isograd.compare.pairing.conventions import words_and_numbers
from isograd.compare.pairing.slots import Key, Slot
from isograd.compare.pairing.transforms import Shape

PATTERNS = (("q", "k", "v"), ("k", "v"))


def with_fused_met(reference: list[Slot], port: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    """The slots of both sides, with projections put together where the other side fuses them."""
    for pattern in PATTERNS:
        reference, port = (
            _put_together(reference, port, pattern),
            _put_together(port, reference, pattern),
        )
    return reference, port


def _put_together(several: list[Slot], fused: list[Slot], pattern: tuple[str, ...]) -> list[Slot]:
    wanted = _matrices(fused)
    present = _matrices(several)
    groups = _named_groups(several, pattern)
    fused_side = Counter(
        _common(_joined(group, pattern)) for group in _named_groups(fused, pattern)
    )
    if not groups and len(pattern) == 3:
        groups = _first_three(several, fused)
    made: list[Slot] = []
    used: set[int] = set()
    for group in groups:
        whole = _joined(group, pattern)
        shape = _common(whole)
        if wanted[shape] - present[shape] <= 0 or fused_side[shape] >= len(groups):
            continue
        made.append(whole)
        used.update(id(slot) for slot in group)
    return [slot for slot in several if id(slot) not in used] + made


def _matrices(slots: Sequence[Slot]) -> Counter[Shape]:
    return Counter(_common(slot) for slot in slots if len(slot.shapes.get("weight", ())) == 2)


def _common(slot: Slot) -> Shape:
    return tuple(sorted(slot.shapes["weight"]))


def _is_matrix(slot: Slot) -> bool:
    return not slot.is_composite and len(slot.shapes.get("weight", ())) == 2


def _named_groups(slots: Sequence[Slot], pattern: tuple[str, ...]) -> list[list[Slot]]:
    """Groups of siblings that are called query, key and value, in this order."""
    siblings: dict[Key, dict[str, list[Slot]]] = defaultdict(lambda: defaultdict(list))
    for slot in slots:
        if not _is_matrix(slot) or not slot.path:
            continue
        named = [word for word in words_and_numbers(slot.path[-1])[0] if word in ("q", "k", "v")]
        if len(named) == 1:
            siblings[slot.key[:-1]][named[0]].append(slot)
    groups = []
    for by_word in siblings.values():
        group = [by_word[word][0] for word in pattern if len(by_word.get(word, ())) == 1]
        if len(group) == len(pattern) and len({slot.shapes["weight"][1] for slot in group}) == 1:
            groups.append(group)
    return groups


def _first_three(several: Sequence[Slot], fused: Sequence[Slot]) -> list[list[Slot]]:
    """Without telling names: the first three alike of four siblings, as attention keeps them."""
    named = {
        _common(slot)
        for slot in fused
        if _is_matrix(slot) and slot.path and "qkv" in words_and_numbers(slot.path[-1])[0]
    }
    siblings: dict[tuple[Key, Shape], list[Slot]] = defaultdict(list)
    for slot in several:
        if _is_matrix(slot):
            siblings[slot.key[:-1], slot.shapes["weight"]].append(slot)
    return [
        sorted(slots, key=lambda slot: slot.definition)[:3]
        for (_, shape), slots in siblings.items()
        if len(slots) in (3, 4) and tuple(sorted((3 * shape[0], shape[1]))) in named
    ]


def _joined(group: Sequence[Slot], pattern: tuple[str, ...]) -> Slot:
    first = group[0]
    roles = [role for role in first.parts if all(role in slot.parts for slot in group)]
    return Slot(
        path=(*first.path[:-1], "".join(pattern)),
        key=(*first.key[:-1], "".join(pattern)),
        kind=first.kind,
        library=first.library,
        parts={role: tuple(slot.parts[role][0] for slot in group) for role in roles},
        shapes={
            role: (sum(slot.shapes[role][0] for slot in group), *first.shapes[role][1:])
            for role in roles
        },
        definition=min(slot.definition for slot in group),
        execution=min(slot.execution for slot in group),
    )
