"""Fused projections: one side keeps query, key and value in one matrix, the other in several.

So do gated MLPs with the gate and the projection that it multiplies.

The several are put together into one slot of the shape of the fused one; from there on it is
paired like any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from isograd.pairing.conventions import words_and_numbers
from isograd.pairing.slots import Key, Slot
from isograd.pairing.transforms import Shape

PATTERNS = (("q", "k", "v"), ("k", "v"), ("gate", "up"))


def with_fused_met(reference: list[Slot], port: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    """The slots of both sides, with projections put together where the other network fuses them."""
    for pattern in PATTERNS:
        reference, port = (
            _put_together(reference, port, pattern),
            _put_together(port, reference, pattern),
        )
    return reference, port


def _put_together(several: list[Slot], fused: list[Slot], pattern: tuple[str, ...]) -> list[Slot]:
    wanted = _matrices(fused)
    present = _matrices(several)
    order = _order_in(fused, pattern)
    groups = _named_groups(several, order)
    fused_side = Counter(
        _common(_joined(group, pattern, axis))
        for group in _named_groups(fused, pattern)
        for axis in [_axis(group, several)]
    )
    if not groups and len(pattern) == 3:
        groups = _first_three(several, fused)
    made: list[Slot] = []
    used: set[int] = set()
    for group in groups:
        whole = _joined(group, order, _axis(group, fused))
        shape = _common(whole)
        if wanted[shape] - present[shape] <= 0 or fused_side[shape] >= len(groups):
            continue
        made.append(whole)
        used.update(id(slot) for slot in group)
    return [slot for slot in several if id(slot) not in used] + made


def _matrices(slots: Sequence[Slot]) -> Counter[Shape]:
    return Counter(_common(slot) for slot in slots if len(_shape(slot)) == 2)


def _shape(slot: Slot) -> Shape:
    return slot.shapes[slot.main_role]


def _common(slot: Slot) -> Shape:
    return tuple(sorted(_shape(slot)))


def _is_matrix(slot: Slot) -> bool:
    return not slot.is_composite and len(_shape(slot)) == 2


def _order_in(fused: Sequence[Slot], pattern: tuple[str, ...]) -> tuple[str, ...]:
    """The pattern, backwards where the name of the fused one spells it so."""
    backwards = "".join(reversed(pattern))
    for slot in fused:
        if _is_matrix(slot) and slot.path and backwards in words_and_numbers(slot.path[-1])[0]:
            return pattern[::-1]
    return pattern


def _axis(group: Sequence[Slot], fused: Sequence[Slot]) -> int:
    """The axis along which the matrices are put together.

    A layer stores (out, in).  A raw matrix may be (in, out), which the sizes tell, or where they
    do not, a raw fused one.
    """
    shapes = [_shape(slot) for slot in group]
    if len({shape[1] for shape in shapes}) > 1:
        return 1
    if len({shape[0] for shape in shapes}) > 1 or any(slot.library for slot in group):
        return 0
    wholes = [_joined_shape(shapes, axis) for axis in (0, 1)]
    candidates = [slot for slot in fused if _is_matrix(slot)]
    raw = {_shape(slot) for slot in candidates if not slot.library}
    if (wholes[0] in raw) != (wholes[1] in raw):
        return 1 if wholes[1] in raw else 0
    sizes = {_common(slot) for slot in candidates}
    return 1 if tuple(sorted(wholes[0])) not in sizes and tuple(sorted(wholes[1])) in sizes else 0


def _named_groups(slots: Sequence[Slot], pattern: tuple[str, ...]) -> list[list[Slot]]:
    """Groups of siblings that are called query, key and value (or gate and up), in this order."""
    telling = ("q", "k", "v") if "v" in pattern else pattern
    siblings: dict[Key, dict[str, list[Slot]]] = defaultdict(lambda: defaultdict(list))
    for slot in slots:
        if not _is_matrix(slot) or not slot.path:
            continue
        named = [word for word in words_and_numbers(slot.path[-1])[0] if word in telling]
        if len(named) == 1:
            siblings[slot.key[:-1]][named[0]].append(slot)
    groups = []
    for by_word in siblings.values():
        group = [by_word[word][0] for word in pattern if len(by_word.get(word, ())) == 1]
        if len(group) == len(pattern) and _may_be_joined(group):
            groups.append(group)
    return groups


def _may_be_joined(group: Sequence[Slot]) -> bool:
    shapes = [_shape(slot) for slot in group]
    if len({slot.main_role for slot in group}) > 1:
        return False
    if len({shape[1] for shape in shapes}) == 1:
        return True
    raw = not any(slot.library for slot in group)
    return raw and len({shape[0] for shape in shapes}) == 1


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
            siblings[slot.key[:-1], _shape(slot)].append(slot)
    return [
        sorted(slots, key=lambda slot: slot.definition)[:3]
        for (_, shape), slots in siblings.items()
        if len(slots) in (3, 4) and tuple(sorted((3 * shape[0], shape[1]))) in named
    ]


def _joined(group: Sequence[Slot], pattern: tuple[str, ...], axis: int) -> Slot:
    first = group[0]
    roles = [role for role in first.parts if all(role in slot.parts for slot in group)]
    axes = {role: axis if role == first.main_role else 0 for role in roles}
    return Slot(
        path=(*first.path[:-1], "".join(pattern)),
        key=(*first.key[:-1], "".join(pattern)),
        kind=first.kind,
        library=first.library,
        parts={role: tuple(slot.parts[role][0] for slot in group) for role in roles},
        shapes={
            role: _joined_shape([slot.shapes[role] for slot in group], axes[role]) for role in roles
        },
        definition=min(slot.definition for slot in group),
        execution=min(slot.execution for slot in group),
    )


def _joined_shape(shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])
