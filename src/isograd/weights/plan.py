"""What a conversion will do: by a map, by the network that will load it, or by convention."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.checkpoints.parts import chosen_part, with_parts
from isograd.errors import UsageError
from isograd.frameworks.base import Structure
from isograd.weights.conventions import plan_by_convention
from isograd.weights.folding import refuse_parts, unfolded, with_folded
from isograd.weights.guesses import paired_by_guess
from isograd.weights.model import Dropped, Move, Plan
from isograd.weights.structure import framework_of, structure_of
from isograd.weights.wrappers import without_wrappers


def make_plan(
    source: TensorSource,
    target: str | None,
    *,
    rename: Mapping[str, str] | None = None,
    given: Plan | None = None,
    network: Structure | None = None,
    origin: str | None = None,
    part: str | None = None,
) -> Plan:
    """Plan a conversion of a source's network, or of another part of it.

    target: the framework whose names are wanted, None keeps the source's; origin: the framework
    whose names the source has, None to tell it from them.
    Raises UsageError where a rename matches nothing or two tensors would get one name.
    """
    if given is not None:
        return _checked(_by_map(source, given))
    every = with_parts(source)
    infos = chosen_part(every, part or "")
    old = {info.name: info.name for info in infos}
    if part:
        infos, old = _named(infos, old, lambda name: name.removeprefix(f"{part}."))
    own = origin or framework_of(old, source.kind)
    notes: list[str] = []
    if network is not None or (target is not None and target != own):
        plain, left = without_wrappers(list(old))
        infos, old = _named(infos, old, plain.__getitem__)
        notes += [f"{word} is left out of the names: a wrapper added it" for word in left]
    infos, old = _renamed(infos, old, rename or {})
    if network is not None:
        plan = plan_for_network(infos, source.kind, network)
    else:
        plan = plan_by_convention(infos, own, target or own)
    plan = _with_old_names(plan, old)
    beside = [
        Dropped(info.name, f"belongs to {info.part or 'the network'}, which was not asked for")
        for info in every
        if info.part != (part or "")
    ]
    return _checked(
        dataclasses.replace(plan, dropped=(*plan.dropped, *beside), notes=(*notes, *plan.notes))
    )


def _checked(plan: Plan) -> Plan:
    counts = Counter(name for move in plan.moves for name in move.target)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UsageError(
            f"several tensors would be called {twice[0]!r}", "Give them other names with --rename."
        )
    if not plan.moves:
        raise UsageError(
            "nothing would be written: no tensor of the source has a place in the target",
            "Check that source and network belong together, or name places with --rename.",
        )
    return plan


def plan_for_network(infos: list[TensorInfo], kind: str, network: Structure) -> Plan:
    """Plan what a network will load: every tensor gets its place, or is named as left over."""
    infos, made = with_folded(infos, network)
    found = paired_by_guess(structure_of(infos, kind, network), network, port_is_known=True)
    moves = [Move(pair.reference, pair.port, pair.transform, "network") for pair in found.pairs]
    moves = [unfolded(move, made) for move in moves]
    refuse_parts(moves, infos, network)
    alone = set(found.alone_by_convention)
    conflicts = dict(found.shape_conflicts)
    shapes = {info.name: info.shape for info in network.parameters}
    dropped = [
        Dropped(
            name,
            f"its shape contradicts {conflicts[name]} of the network"
            if name in conflicts
            else "the network has no place for it",
            needs_action=True,
        )
        for name in (*found.unpaired_reference, *found.unpaired_buffers_reference)
    ]
    names = {info.name for info in infos}
    dropped += [
        Dropped(name, "the other framework does not keep it")
        for name in sorted(alone)
        if name in names
    ]
    missing = [*found.unpaired_port]
    notes = (
        *(
            f"{name} is a buffer that the network computes itself"
            for name in found.unpaired_buffers_port
        ),
        *(
            f"{', '.join(move.source)} are taken for a {move.fold.replace('_', ' ')}"
            for move in moves
            if move.fold
        ),
    )
    ambiguous = tuple(
        f"{', '.join(pair.reference)} → {', '.join(pair.port)} "
        f"(or {', '.join(pair.ambiguous_with)})"
        for pair in found.pairs
        if pair.ambiguous_with
    )
    contradicting = tuple(
        f"{here} has another shape than {there}, {shapes.get(there)}"
        for here, there in conflicts.items()
    )
    return Plan(tuple(moves), tuple(dropped), tuple(missing), notes, ambiguous, contradicting)


def _named(
    infos: list[TensorInfo], old: Mapping[str, str], change: Callable[[str], str]
) -> tuple[list[TensorInfo], dict[str, str]]:
    """The tensors under changed names, and the name in the source of each new one."""
    names: dict[str, str] = {}
    for info in infos:
        name = change(info.name)
        if name in names or not name:
            raise UsageError(
                f"both {names.get(name, '')!r} and {old[info.name]!r} would be called {name!r}",
                "Give them different names with --rename.",
            )
        names[name] = old[info.name]
    tied = {info.name: name for info, name in zip(infos, names, strict=True)}
    return [
        dataclasses.replace(info, name=tied[info.name], tied_to=tied.get(info.tied_to or ""))
        for info in infos
    ], names


def _renamed(
    infos: list[TensorInfo], old: Mapping[str, str], rename: Mapping[str, str]
) -> tuple[list[TensorInfo], dict[str, str]]:
    """The tensors renamed by rules: the longest that is a name or a module's decides."""
    used: set[str] = set()
    rules = sorted(rename.items(), key=lambda item: -len(item[0]))

    def change(name: str) -> str:
        for before, after in rules:
            if name == before or name.startswith(f"{before}."):
                used.add(before)
                return (after + name[len(before) :]).removeprefix(".")
        return name

    found = _named(infos, old, change)
    unused = set(rename) - used
    if unused:
        raise UsageError(
            f"--rename {min(unused)!r} is neither a tensor nor a module of the source",
            "List the names with `isograd params`.",
        )
    return found


def _with_old_names(plan: Plan, old: Mapping[str, str]) -> Plan:
    moves = tuple(
        dataclasses.replace(
            move,
            source=tuple(old[name] for name in move.source),
            why="rename"
            if move.why != "network" and any(old[name] != name for name in move.source)
            else move.why,
        )
        for move in plan.moves
    )
    dropped = tuple(
        dataclasses.replace(item, name=old.get(item.name, item.name)) for item in plan.dropped
    )
    return dataclasses.replace(plan, moves=moves, dropped=dropped)


def _by_map(source: TensorSource, given: Plan) -> Plan:
    named = {name for move in given.moves for name in move.source}
    named |= {item.name for item in given.dropped}
    unknown = sorted(n for move in given.moves for n in move.source if n not in source)
    if unknown:
        raise UsageError(
            f"the map names {unknown[0]!r}, which the source does not hold",
            "Write the map again for this source.",
        )
    left = [
        Dropped(info.name, "the map does not name it", needs_action=True)
        for info in source
        if info.name not in named
    ]
    dropped = tuple(item for item in given.dropped if item.name in source)
    return dataclasses.replace(given, dropped=(*dropped, *left))
