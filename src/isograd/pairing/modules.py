"""Pairing of modules: modules that hold the same parameters are one.

A module is known by the pairs of parameters that lie wholly within it.  Nested modules that hold
the same (a wrapper around one layer) form a chain, aligned by kind and name.  Modules without
parameters pair by name within paired parents, then by kind and order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from isograd.frameworks.base import ModuleInfo, Structure
from isograd.pairing.conventions import (
    CONTAINERS,
    NORMS,
    RECURRENT,
    canonical_component,
    canonical_kind,
    may_be_one,
    stem_and_number,
)
from isograd.pairing.evidence import align_in_order, pair_alike
from isograd.pairing.results import (
    ModuleEvidence,
    ModulePair,
    ModulePairing,
    ParameterPairing,
)
from isograd.pairing.slots import components, enclosing, modules_with_parameters

#: What speaks for two modules of a chain being one.
SAME_KIND = 2.5
SAME_NAME = 2.0
SAME_OUTPUTS = 1.0
BOTH_CONTAINERS = 0.5
NESTED_ALIKE = 1.0


def pair_modules(
    reference: Structure, port: Structure, parameters: ParameterPairing
) -> ModulePairing:
    """Pair the modules of two networks whose parameters are paired."""
    here = _Modules(reference, [pair.reference for pair in parameters.pairs])
    there = _Modules(port, [pair.port for pair in parameters.pairs])
    pairing = _Pairing(here, there)
    pairing.add("", "", "root")
    pairing.pair_by_parameters()
    pairing.pair_by_name()
    pairing.pair_by_order()
    pairing.pair_by_name()
    return pairing.result()


class _Modules:
    """The modules of one side, and what each holds."""

    def __init__(self, structure: Structure, held: Sequence[tuple[str, ...]]) -> None:
        self.infos = {module.name: module for module in structure.modules}
        self.infos.setdefault("", ModuleInfo("", "", library=False))
        self.position = {name: index for index, name in enumerate(self.infos)}
        self.outputs: dict[str, tuple[tuple[int, ...], ...]] = {}
        self.first_use: dict[str, int] = {}
        for index, call in enumerate(structure.calls):
            self.outputs.setdefault(call.module, call.output_shapes)
            self.first_use.setdefault(call.module, index)
        self.with_parameters = modules_with_parameters(structure)
        self.holds = self._held(structure, held)
        self._children: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for name in filter(None, self.infos):
            self._children[name.rpartition(".")[0]].setdefault(_component(name), name)
        self.internal = {name for name in self.infos if self._is_internal(name)}

    def _held(
        self, structure: Structure, held: Sequence[tuple[str, ...]]
    ) -> dict[str, frozenset[int]]:
        """Module -> the pairs that lie within it wholly, under any of their tied names."""
        owners: defaultdict[str, set[str]] = defaultdict(set)
        for info in structure.parameters:
            owners[info.tied_to or info.name].update(enclosing(info.module))
        found: defaultdict[str, set[int]] = defaultdict(set)
        for index, names in enumerate(held):
            for module in set.intersection(*(owners[name] for name in names)):
                found[module].add(index)
        return {name: frozenset(indices) for name, indices in found.items()}

    def _is_internal(self, name: str) -> bool:
        layers = NORMS | RECURRENT
        return any(
            outer in self.infos
            and self.infos[outer].library
            and canonical_kind(self.infos[outer].kind) in layers
            for outer in enclosing(name)
            if outer != name
        )

    def children(self, name: str) -> dict[str, str]:
        """Canonical component -> name of each child."""
        return self._children[name]


class _Pairing:
    """The pairs found so far."""

    def __init__(self, here: _Modules, there: _Modules) -> None:
        self._here, self._there = here, there
        self._pairs: dict[str, ModulePair] = {}
        self._taken: dict[str, str] = {}
        self._by_use = bool(here.first_use) and bool(there.first_use)

    def add(self, reference: str, port: str, how: ModuleEvidence) -> None:
        """Note a pair."""
        self._pairs[reference] = ModulePair(reference, port, how)
        self._taken[port] = reference

    def pair_by_parameters(self) -> None:
        """Pair the modules that hold the same pairs of parameters."""
        chains, port_chains = self._chains(self._here), self._chains(self._there)
        for held, chain in chains.items():
            others = port_chains.get(held, [])
            if not others:
                continue

            def score(row: int, column: int) -> float:
                return self._likeness(chain[row], others[column])  # noqa: B023 - called at once

            for row, column in align_in_order(len(chain), len(others), score):
                self.add(chain[row], others[column], "parameters")

    def _chains(self, side: _Modules) -> dict[frozenset[int], list[str]]:
        chains: dict[frozenset[int], list[str]] = {}
        for name in side.infos:
            held = side.holds.get(name)
            if name and held:
                chains.setdefault(held, []).append(name)
        return chains

    def _likeness(self, reference: str, port: str) -> float:
        info, other = self._here.infos[reference], self._there.infos[port]
        score = NESTED_ALIKE
        if canonical_kind(info.kind) == canonical_kind(other.kind):
            score += SAME_KIND
        if _component(reference) == _component(port):
            score += SAME_NAME
        if (canonical_kind(info.kind) in CONTAINERS) == (canonical_kind(other.kind) in CONTAINERS):
            score += BOTH_CONTAINERS
        outputs = self._here.outputs.get(reference)
        if outputs is not None and outputs == self._there.outputs.get(port):
            score += SAME_OUTPUTS
        return score

    def pair_by_name(self) -> None:
        """Pair modules with the same name within paired parents, from the outermost inwards."""
        for name in sorted(self._here.infos, key=lambda name: (name.count("."), name)):
            if not name or name in self._pairs:
                continue
            parent = self._pairs.get(name.rpartition(".")[0])
            if parent is None:
                continue
            partner = self._there.children(parent.port).get(_component(name))
            if partner is None or partner in self._taken or not self._may_be_one(name, partner):
                continue
            self.add(name, partner, "name")

    def _may_be_one(self, reference: str, port: str) -> bool:
        info, other = self._here.infos[reference], self._there.infos[port]
        held, port_held = self._held(reference, port)
        if held != port_held and not held & port_held:
            return False
        if held and port_held and held != port_held and canonical_kind(info.kind) in CONTAINERS:
            return held <= port_held or port_held <= held
        if stem_and_number(_component(reference))[1] and not held:
            return canonical_kind(info.kind) == canonical_kind(other.kind)
        return may_be_one(info.kind, other.kind, both_library=info.library and other.library)

    def _held(self, reference: str, port: str) -> tuple[frozenset[int], frozenset[int]]:
        nothing: frozenset[int] = frozenset()
        return self._here.holds.get(reference, nothing), self._there.holds.get(port, nothing)

    def pair_by_order(self) -> None:
        """Pair modules without parameters by kind, names and order within paired parents.

        Where one side has none of a kind, the other's may have moved: they go to the outer scope.
        """
        here = self._by_scope(self._here, set(self._pairs), {})
        there = self._by_scope(self._there, set(self._taken), dict(self._taken))
        for scope in sorted(self._pairs, key=lambda scope: len(components(scope)), reverse=True):
            outer = self._outer(scope)
            for kind in sorted({kind for place, kind in (*here, *there) if place == scope}):
                mine, its = here.pop((scope, kind), []), there.pop((scope, kind), [])
                if len(mine) == len(its):
                    self._pair_alike(mine, its)
                elif scope and not (mine and its):
                    here.setdefault((outer, kind), []).extend(mine)
                    there.setdefault((outer, kind), []).extend(its)

    def _outer(self, scope: str) -> str:
        for name in enclosing(scope)[1:]:
            if name in self._pairs:
                return name
        return ""

    def _by_scope(
        self, side: _Modules, paired: set[str], reference_names: dict[str, str]
    ) -> dict[tuple[str, str], list[str]]:
        """Unpaired modules without parameters, by the reference's name of the scope and by kind."""
        found: dict[tuple[str, str], list[str]] = {}
        for name, info in side.infos.items():
            if name in paired or name in side.with_parameters or name in side.internal:
                continue
            scope = next(outer for outer in enclosing(name) if outer in paired)
            place = (reference_names.get(scope, scope), canonical_kind(info.kind))
            found.setdefault(place, []).append(name)
        return found

    def _pair_alike(self, mine: list[str], its: list[str]) -> None:
        if not mine:
            return
        pairs = pair_alike(
            [components(name) for name in mine],
            [components(name) for name in its],
            [self._position(self._here, name) for name in mine],
            [self._position(self._there, name) for name in its],
        )
        for row, column in pairs:
            self.add(mine[row], its[column], "order")

    def _position(self, side: _Modules, name: str) -> tuple[int, int]:
        position = side.position[name]
        return (side.first_use.get(name, len(side.first_use)) if self._by_use else 0, position)

    def result(self) -> ModulePairing:
        """The pairing, with what has no partner."""
        left = self._left(self._here, self._pairs)
        port_left = self._left(self._there, self._taken)
        return ModulePairing(
            pairs=tuple(self._pairs[name] for name in self._here.infos if name in self._pairs),
            unpaired_reference=_only(left, self._here.with_parameters, present=True),
            unpaired_port=_only(port_left, self._there.with_parameters, present=True),
            parameterless_reference=_only(left, self._here.with_parameters, present=False),
            parameterless_port=_only(port_left, self._there.with_parameters, present=False),
        )

    def _left(self, side: _Modules, paired: Iterable[str]) -> list[str]:
        gone = set(paired) | side.internal
        return [name for name in side.infos if name not in gone]


def _only(names: Sequence[str], chosen: set[str], *, present: bool) -> tuple[str, ...]:
    return tuple(name for name in names if (name in chosen) == present)


def _component(name: str) -> str:
    return canonical_component(name.rpartition(".")[2])
