"""Pairing of calls: which call within the port's forward pass is which of the reference's.

Within a paired call the calls of paired modules meet occurrence by occurrence.  The calls of
modules without a partner, and of modules that one side shares and the other does not, are aligned
by kind and output shapes between the pairs found so far, and by their values where these tell.
Nested modules that hold the same parameters (a block and the sequence within it, to which the
block adds its input) are distinguished by their values as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from isograd.frameworks.base import ModuleInfo, Structure
from isograd.pairing.conventions import CONTAINERS, canonical_kind, may_be_one
from isograd.pairing.evidence import Pairs, align_in_order, in_order
from isograd.pairing.results import ModulePairing
from isograd.pairing.slots import enclosing, modules_with_parameters

Similarity = Callable[[int, int], float]

#: A call is another's by value if its next rival is this many times further away.
CLEARLY_CLOSER = 10.0
#: Relative difference below which two values are taken for the same, whatever the rivals are.
UNRELATED = 0.5

#: Relative differences below which nested calls have the same value, and above which they have not.
EQUAL = 1e-3
DIFFERENT = 1e-2

#: What speaks for two calls in an alignment; the number of pairs comes first.
FITTING = 4.0
PAIRED_MODULES = 2.0
SAME_KIND = 1.0


def pair_calls(
    reference: Structure,
    port: Structure,
    modules: ModulePairing,
    similarity: Similarity | None = None,
) -> tuple[tuple[int, int], ...]:
    """Pairs of indices into the calls of both sides, in the order of the reference.

    similarity gives the relative difference of the values of two calls, lower is closer; it is
    asked only where counts differ, modules have no partner or nested ones hold the same.
    """
    pairing = _Calls(reference, port, modules, similarity)
    roots = [index for index, call in enumerate(reference.calls) if call.parent is None]
    port_roots = [index for index, call in enumerate(port.calls) if call.parent is None]
    pairing.pair_within(roots, port_roots)
    return tuple(sorted(pairing.pairs))


class _Calls:
    """The call trees of both sides."""

    def __init__(
        self,
        reference: Structure,
        port: Structure,
        modules: ModulePairing,
        similarity: Similarity | None,
    ) -> None:
        self._reference, self._port = reference, port
        self._similarity = similarity
        called, port_called = ({call.module for call in side.calls} for side in (reference, port))
        # a list that one side calls (Sequential) and the other walks through has no call to meet
        met = [p for p in modules.pairs if (p.reference in called) == (p.port in port_called)]
        self._partner = {pair.reference: pair.port for pair in met}
        self._port_paired = {pair.port for pair in met}
        self._infos = {module.name: module for module in reference.modules}
        self._port_infos = {module.name: module for module in port.modules}
        self._children, self._port_children = _children(reference), _children(port)
        self._with_parameters = modules_with_parameters(reference)
        self._port_with_parameters = modules_with_parameters(port)
        self._held, self._port_held = _held(reference), _held(port)
        self._looked_through: set[int] = set()
        self._port_looked_through: set[int] = set()
        self._chosen: set[tuple[int, int]] = set()
        self.pairs: Pairs = []

    def pair_within(self, reference: Sequence[int], port: Sequence[int]) -> None:
        """Pair the calls of two forests that belong to each other."""
        waiting = [(list(reference), list(port))]
        while waiting:
            here, there = waiting.pop()
            found = self._pair_frontiers(
                self._reference_frontier(here),
                self._port_frontier(there),
            )
            self.pairs.extend(found)
            waiting.extend(
                (self._children.get(row, []), self._port_children.get(column, []))
                for row, column in found
                if self._is_paired(row, column)
            )

    def _is_paired(self, call: int, other: int) -> bool:
        """Whether both modules have a partner: calls of others are looked through instead."""
        return (call, other) in self._chosen or (
            self._reference.calls[call].module in self._partner
            and self._port.calls[other].module in self._port_paired
        )

    def _reference_frontier(self, calls: Sequence[int]) -> list[int]:
        calls_of, partner, through = self._reference.calls, self._partner, self._looked_through
        return _frontier(
            calls,
            self._children,
            lambda index: calls_of[index].module not in partner or index in through,
        )

    def _port_frontier(self, calls: Sequence[int]) -> list[int]:
        calls_of, paired, through = self._port.calls, self._port_paired, self._port_looked_through
        return _frontier(
            calls,
            self._port_children,
            lambda index: calls_of[index].module not in paired or index in through,
        )

    def _pair_frontiers(self, here: list[int], there: list[int]) -> Pairs:
        by_module, port_by_module = (
            self._by_module(here, self._reference),
            self._by_module(there, self._port),
        )
        pairs: Pairs = []
        for module, calls in by_module.items():
            others = port_by_module.get(self._partner.get(module, "\0"), [])
            if len(calls) == len(others):
                pairs.extend(zip(calls, others, strict=True))
        pairs = [pair for pair in pairs if self._may_be_one_call(*pair)]
        if self._similarity is not None:
            here, there, pairs = self._nested_by_value(here, there, pairs, self._similarity)
        pairs += self._align_rest(here, there, pairs)
        return pairs

    def _may_be_one_call(self, call: int, other: int) -> bool:
        """Whether paired modules do the same at all: a bag of embeddings also adds them up."""
        info = self._infos.get(self._reference.calls[call].module)
        port_info = self._port_infos.get(self._port.calls[other].module)
        if info is None or port_info is None:
            return True
        bags = [canonical_kind(side.kind) == "EmbeddingBag" for side in (info, port_info)]
        return bags[0] == bags[1]

    def _nested_by_value(
        self, here: list[int], there: list[int], pairs: Pairs, similarity: Similarity
    ) -> tuple[list[int], list[int], Pairs]:
        """The frontiers and pairs, with partners changed for those around or within them."""
        chosen: Pairs = []
        for pair in pairs:
            found = self._equal_nested(pair, similarity)
            if found != pair and not any(
                found[0] == other[0] or found[1] == other[1] for other in chosen
            ):
                chosen.append(found)
                self._looked_through.update({pair[0]} - {found[0]})
                self._port_looked_through.update({pair[1]} - {found[1]})
        if not chosen:
            return here, there, pairs
        self._chosen.update(chosen)
        replaced = {index for index in here if index in self._looked_through}
        port_replaced = {index for index in there if index in self._port_looked_through}
        kept = [pair for pair in pairs if not (pair[0] in replaced or pair[1] in port_replaced)]
        kept += chosen
        here = self._reference_frontier(self._tops(here, self._reference))
        there = self._port_frontier(self._tops(there, self._port))
        within = _below({row for row, _ in chosen}, self._children)
        port_within = _below({column for _, column in chosen}, self._port_children)
        return (
            [index for index in here if index not in within],
            [index for index in there if index not in port_within],
            [pair for pair in kept if not (pair[0] in within or pair[1] in port_within)],
        )

    def _tops(self, frontier: Sequence[int], structure: Structure) -> list[int]:
        """The calls of a frontier that lie in no other call of it."""
        inside = set(frontier)
        return [index for index in frontier if structure.calls[index].parent not in inside]

    def _equal_nested(self, pair: tuple[int, int], similarity: Similarity) -> tuple[int, int]:
        """The pair, or where its values differ the pair of nested calls whose values are equal."""
        around = self._nested(pair[0], self._reference, self._held, self._children)
        port_around = self._nested(pair[1], self._port, self._port_held, self._port_children)
        candidates = [
            *((index, pair[1]) for index in around if self._is_free(index)),
            *((pair[0], index) for index in port_around if self._is_free_in_port(index)),
        ]
        if not candidates or not similarity(*pair) > DIFFERENT:
            return pair
        return next((found for found in candidates if similarity(*found) < EQUAL), pair)

    def _is_free(self, call: int) -> bool:
        module = self._reference.calls[call].module
        return module not in self._partner

    def _is_free_in_port(self, call: int) -> bool:
        return self._port.calls[call].module not in self._port_paired

    def _nested(
        self,
        call: int,
        structure: Structure,
        held: Mapping[str, frozenset[str]],
        children: Mapping[int, list[int]],
    ) -> list[int]:
        """The calls around and within a call that hold the same parameters, the nearest first."""
        mine = held.get(structure.calls[call].module)
        if not mine:
            return []
        found = []
        outer = structure.calls[call].parent
        while outer is not None and held.get(structure.calls[outer].module) == mine:
            found.append(outer)
            outer = structure.calls[outer].parent
        waiting = list(children.get(call, []))
        while waiting:
            index = waiting.pop(0)
            if held.get(structure.calls[index].module) == mine:
                found.append(index)
                waiting.extend(children.get(index, []))
        return found

    def _by_module(self, calls: Sequence[int], structure: Structure) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index in calls:
            found.setdefault(structure.calls[index].module, []).append(index)
        return found

    def _align_rest(self, here: list[int], there: list[int], pairs: Pairs) -> Pairs:
        """Pair what is left between the calls that are paired already."""
        taken, port_taken = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        rows = {index: row for row, index in enumerate(here)}
        columns = {index: column for column, index in enumerate(there)}
        found: Pairs = []
        if self._similarity is not None:
            found = self._decided_by_value(
                [index for index in here if index not in taken],
                [index for index in there if index not in port_taken],
                self._similarity,
            )
            taken.update(pair[0] for pair in found)
            port_taken.update(pair[1] for pair in found)
        anchors = in_order([(rows[pair[0]], columns[pair[1]]) for pair in (*pairs, *found)])
        start = port_start = 0
        for row, column in [*anchors, (len(here), len(there))]:
            mine = [index for index in here[start:row] if index not in taken]
            its = [index for index in there[port_start:column] if index not in port_taken]
            start, port_start = row + 1, column + 1
            found.extend(
                (mine[position], its[other])
                for position, other in align_in_order(len(mine), len(its), self._scores(mine, its))
            )
        return found

    def _scores(self, mine: list[int], its: list[int]) -> Callable[[int, int], float | None]:
        def score(row: int, column: int) -> float | None:
            return self._worth(mine[row], its[column])

        return score

    def _worth(self, call: int, other: int) -> float | None:
        """What speaks for two calls being one; None where something speaks against it."""
        mine, its = self._reference.calls[call], self._port.calls[other]
        if mine.output_shapes != its.output_shapes:
            return None
        info, port_info = self._infos.get(mine.module), self._port_infos.get(its.module)
        if info is None or port_info is None:
            return None
        if self._partner.get(mine.module) == its.module:
            return FITTING + PAIRED_MODULES
        if mine.module in self._with_parameters or its.module in self._port_with_parameters:
            return None
        return _kinds_worth(info, port_info)

    def _decided_by_value(self, here: list[int], there: list[int], similarity: Similarity) -> Pairs:
        """Pairs of fitting calls whose values are far closer to each other than to any rival's."""
        rivals: defaultdict[int, dict[int, float]] = defaultdict(dict)
        port_rivals: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for call in here:
            fitting = [other for other in there if self._worth(call, other) is not None]
            for other in fitting:
                difference = similarity(call, other)
                rivals[call][other] = difference
                port_rivals[other][call] = difference
        return [
            (call, other)
            for call, differences in rivals.items()
            for other in [_clearly_closest(differences)]
            if other is not None and _clearly_closest(port_rivals[other]) == call
        ]


def _frontier(
    calls: Sequence[int],
    children: Mapping[int, list[int]],
    is_looked_through: Callable[[int], bool],
) -> list[int]:
    """The calls of a forest in order, seen through some of them."""
    seen = []
    stack = list(reversed(calls))
    while stack:
        index = stack.pop()
        seen.append(index)
        if is_looked_through(index):
            stack.extend(reversed(children.get(index, [])))
    return seen


def _below(calls: Iterable[int], children: Mapping[int, list[int]]) -> set[int]:
    """All calls within the given ones."""
    found: set[int] = set()
    waiting = list(calls)
    while waiting:
        inside = children.get(waiting.pop(), [])
        found.update(inside)
        waiting.extend(inside)
    return found


def _held(structure: Structure) -> dict[str, frozenset[str]]:
    """Module -> the tensors it holds, itself or further inside."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for info in structure.parameters:
        for name in enclosing(info.module):
            found[name].add(info.tied_to or info.name)
    return {name: frozenset(tensors) for name, tensors in found.items()}


def _children(structure: Structure) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for index, call in enumerate(structure.calls):
        if call.parent is not None:
            children.setdefault(call.parent, []).append(index)
    return children


def _kinds_worth(info: ModuleInfo, port_info: ModuleInfo) -> float | None:
    """What two classes say of calls whose modules have no partner in each other."""
    if canonical_kind(info.kind) == canonical_kind(port_info.kind):
        return FITTING + SAME_KIND
    containers = {canonical_kind(info.kind), canonical_kind(port_info.kind)} & CONTAINERS
    if containers or not (info.library and port_info.library):
        return None
    if not may_be_one(info.kind, port_info.kind, both_library=True):
        return None
    return FITTING if "Identity" not in (info.kind, port_info.kind) else None


def _clearly_closest(differences: Mapping[int, float]) -> int | None:
    """The index of the least difference if it is far below the next."""
    ordered = sorted(differences.items(), key=lambda found: found[1])
    index, least = ordered[0]
    if not least < UNRELATED:
        return None
    if len(ordered) > 1 and not ordered[1][1] > CLEARLY_CLOSER * least:
        return None
    return index
