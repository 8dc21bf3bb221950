"""Pairing by structure: what names leave open, shapes, kinds, nesting and order decide.

Within a scope (two containers known to be one, at first the innermost) whole containers that hold
the same multiset of slots are paired before single slots, the greatest first, so that a repeated
block meets its counterpart however deep the porter nested it.  Slots whose counts differ are
aligned in order between the pairs found so far; what is left moves up to the enclosing scope.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from isograd.pairing.evidence import align_in_order, closeness, in_order, pair_alike
from isograd.pairing.names import NumberedNames, SlotPair
from isograd.pairing.slots import (
    Key,
    Slot,
    role_transforms,
    transforms_of_shapes,
)

Order = Literal["definition", "execution"]
Signature = Callable[[Slot], tuple[object, ...]]

#: What a slot of equal signature counts in an alignment; names add up to 1, so order and number
#: of pairs come first.
SAME_SIGNATURE = 4.0
FITTING = 2.0


def pair_by_structure(
    reference: list[Slot],
    port: list[Slot],
    *,
    trust: NumberedNames,
    signature: Signature,
    order: Order,
) -> list[SlotPair]:
    """Pair slots scope by scope, from the innermost outwards."""
    containers = _prefixes(reference) & _prefixes(port)
    scopes_reference = _by_scope(reference, containers, trust)
    scopes_port = _by_scope(port, containers, trust)
    pairs: list[SlotPair] = []
    scopes = set(scopes_reference) | set(scopes_port) | {()}
    depth = max(len(scope) for scope in scopes)
    while depth >= 0:
        for scope in sorted(scope for scope in scopes if len(scope) == depth):
            here, there = scopes_reference.pop(scope, []), scopes_port.pop(scope, [])
            found = _Scope(here, there, scope, scope, signature, order).pair()
            pairs.extend(found)
            if scope:
                outer = scope[:-1]
                scopes.add(outer)
                scopes_reference[outer] += _without(here, [pair.reference for pair in found])
                scopes_port[outer] += _without(there, [pair.port for pair in found])
        depth -= 1
    return pairs


def pair_last_ones(reference: Sequence[Slot], port: Sequence[Slot]) -> list[SlotPair]:
    """Pairs of weights that are left over and fit each other and no other, whatever their kinds."""
    here = [slot for slot in reference if _is_weight(slot)]
    there = [slot for slot in port if _is_weight(slot)]
    fitting = [
        SlotPair(slot, other, "structure", transforms)
        for slot in here
        for other in there
        for transforms in [transforms_of_shapes(slot, other, same_name=False)]
        if transforms is not None
    ]
    rows = Counter(id(pair.reference) for pair in fitting)
    columns = Counter(id(pair.port) for pair in fitting)
    return [pair for pair in fitting if rows[id(pair.reference)] == columns[id(pair.port)] == 1]


def _is_weight(slot: Slot) -> bool:
    """Whether a single parameter is trained and has several axes: others' sizes tell too little."""
    (info,) = slot.parts[slot.main_role]
    return len(info.shape) > 1 and info.trainable


def _prefixes(slots: Sequence[Slot]) -> set[Key]:
    return {slot.key[:depth] for slot in slots for depth in range(1, len(slot.key))}


def _by_scope(
    slots: Sequence[Slot], containers: set[Key], trust: NumberedNames
) -> defaultdict[Key, list[Slot]]:
    found: defaultdict[Key, list[Slot]] = defaultdict(list)
    for slot in slots:
        depth = len(slot.key) - 1
        while depth > 0 and not (slot.key[:depth] in containers and trust.trusts(slot.key[:depth])):
            depth -= 1
        found[slot.key[: max(depth, 0)]].append(slot)
    return found


def _without(slots: Sequence[Slot], taken: Sequence[Slot]) -> list[Slot]:
    gone = {id(slot) for slot in taken}
    return [slot for slot in slots if id(slot) not in gone]


@dataclass(frozen=True)
class _Group:
    """A container, or a slot on its own, as a candidate."""

    path: Key
    slots: tuple[Slot, ...]


class _Scope:
    """The slots of two containers that are taken for one."""

    def __init__(
        self,
        reference: Sequence[Slot],
        port: Sequence[Slot],
        reference_prefix: Key,
        port_prefix: Key,
        signature: Signature,
        order: Order,
    ) -> None:
        self._signature = signature
        self._order = order
        self._reference = sorted(reference, key=self._position)
        self._port = sorted(port, key=self._position)
        self._reference_prefix = reference_prefix
        self._port_prefix = port_prefix
        self._pairs: list[SlotPair] = []
        self._taken: set[int] = set()

    def pair(self) -> list[SlotPair]:
        """All pairs that can be found in this scope."""
        if self._reference and self._port:
            self._pair_containers()
            self._pair_equal_counts()
            self._align_rest()
            self._pair_equal_counts()
        return self._pairs

    def _position(self, slot: Slot) -> tuple[int, int]:
        first = slot.execution if self._order == "execution" else slot.definition
        return first, slot.definition

    def _free(self, slots: Sequence[Slot]) -> list[Slot]:
        return [slot for slot in slots if id(slot) not in self._taken]

    def _take(self, pairs: Sequence[SlotPair]) -> None:
        for pair in pairs:
            self._taken.update((id(pair.reference), id(pair.port)))
        self._pairs.extend(pairs)

    def _pair_containers(self) -> None:
        here = self._containers(self._reference, len(self._reference_prefix))
        there = self._containers(self._port, len(self._port_prefix))
        for fingerprint in sorted(here.keys() & there.keys(), key=_size, reverse=True):
            groups = [group for group in here[fingerprint] if self._is_free(group)]
            others = [group for group in there[fingerprint] if self._is_free(group)]
            if not groups or len(groups) != len(others):
                continue
            for group, other in self._pair_groups(groups, others):
                self._take(
                    _Scope(
                        group.slots,
                        other.slots,
                        group.path,
                        other.path,
                        self._signature,
                        self._order,
                    ).pair()
                )

    def _is_free(self, group: _Group) -> bool:
        return not any(id(slot) in self._taken for slot in group.slots)

    def _containers(
        self, slots: Sequence[Slot], depth: int
    ) -> dict[frozenset[tuple[object, int]], list[_Group]]:
        """The containers of the scope by what they hold; of equal nested ones the outermost."""
        held: dict[Key, list[Slot]] = {}
        for slot in slots:
            for length in range(depth + 1, len(slot.key) + 1):
                held.setdefault(slot.key[:length], []).append(slot)
        found: dict[frozenset[tuple[object, int]], list[_Group]] = {}
        for path, inside in held.items():
            parent = held.get(path[:-1])
            if len(inside) == 1 or (parent is not None and len(parent) == len(inside)):
                continue
            counts = Counter(self._signature(slot) for slot in inside)
            fingerprint: frozenset[tuple[object, int]] = frozenset(counts.items())
            found.setdefault(fingerprint, []).append(_Group(path, tuple(inside)))
        return found

    def _pair_groups(
        self, groups: Sequence[_Group], others: Sequence[_Group]
    ) -> list[tuple[_Group, _Group]]:
        pairs = pair_alike(
            [group.path[len(self._reference_prefix) :] for group in groups],
            [other.path[len(self._port_prefix) :] for other in others],
            [min(self._position(slot) for slot in group.slots) for group in groups],
            [min(self._position(slot) for slot in other.slots) for other in others],
        )
        return [(groups[row], others[column]) for row, column in pairs]

    def _pair_equal_counts(self) -> None:
        here = self._classes(self._free(self._reference))
        there = self._classes(self._free(self._port))
        for signature, slots in here.items():
            others = there.get(signature, [])
            if len(slots) != len(others):
                continue
            groups = [_Group(slot.key, (slot,)) for slot in slots]
            candidates = [_Group(slot.key, (slot,)) for slot in others]
            made = [
                _slot_pair(group.slots[0], other.slots[0])
                for group, other in self._pair_groups(groups, candidates)
            ]
            fitting = [pair for pair in made if pair is not None]
            if len(fitting) == len(made):
                self._take(fitting)

    def _classes(self, slots: Sequence[Slot]) -> dict[tuple[object, ...], list[Slot]]:
        classes: dict[tuple[object, ...], list[Slot]] = {}
        for slot in slots:
            classes.setdefault(self._signature(slot), []).append(slot)
        return classes

    def _align_rest(self) -> None:
        rows = {id(slot): index for index, slot in enumerate(self._reference)}
        columns = {id(slot): index for index, slot in enumerate(self._port)}
        anchors = in_order(
            [(rows[id(pair.reference)], columns[id(pair.port)]) for pair in self._pairs]
        )
        start_row = start_column = 0
        for row, column in [*anchors, (len(self._reference), len(self._port))]:
            self._align(
                self._free(self._reference[start_row:row]),
                self._free(self._port[start_column:column]),
            )
            start_row, start_column = row + 1, column + 1

    def _align(self, here: list[Slot], there: list[Slot]) -> None:
        signatures = [self._signature(slot) for slot in there]

        def score(row: int, column: int) -> float | None:
            slot, other = here[row], there[column]
            if self._signature(slot) == signatures[column]:
                worth = SAME_SIGNATURE
            elif slot.main_role == other.main_role and slot.kind == other.kind:
                worth = FITTING
            else:
                return None
            if role_transforms(slot, other, same_name=False) is None:
                return None
            return worth + closeness(
                slot.key[len(self._reference_prefix) :], other.key[len(self._port_prefix) :]
            )

        if here and there:
            made = [
                _slot_pair(here[row], there[column])
                for row, column in align_in_order(len(here), len(there), score)
            ]
            self._take([pair for pair in made if pair is not None])


def _slot_pair(reference: Slot, port: Slot) -> SlotPair | None:
    transforms = role_transforms(reference, port, same_name=False)
    if transforms is None:
        return None
    return SlotPair(reference, port, "structure", transforms)


def _size(fingerprint: frozenset[tuple[object, int]]) -> tuple[int, int]:
    return sum(count for _, count in fingerprint), len(fingerprint)
