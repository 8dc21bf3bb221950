"""What a conversion will do: by a map, by the network that will load it, or by convention."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.compare.pairing import pair_parameters
from isograd.errors import UsageError
from isograd.frameworks.base import Structure
from isograd.weights.conventions import plan_by_convention
from isograd.weights.model import Dropped, Move, Plan
from isograd.weights.structure import framework_of, structure_of


def make_plan(
    source: TensorSource,
    target: str | None,
    *,
    rename: Mapping[str, str],
    given: Plan | None = None,
    network: Structure | None = None,
) -> Plan:
    """Plan a conversion; target: the framework whose names are wanted, None keeps the source's.

    Raises UsageError where a rename matches nothing or two tensors would get one name.
    """
    infos = list(source)
    renamed, targets = _renamed(infos, rename)
    if given is not None:
        plan = _by_map(source, given)
    elif network is not None:
        plan = plan_for_network(renamed, source.kind, network)
    else:
        own = framework_of(source.names(), source.kind)
        plan = plan_by_convention(renamed, own, target or own)
    if rename and given is None:
        plan = _with_old_names(plan, targets)
    twice = [
        name
        for name, count in Counter(n for move in plan.moves for n in move.target).items()
        if count > 1
    ]
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
    found = pair_parameters(structure_of(infos, kind), network)
    moves = [Move(pair.reference, pair.port, pair.transform, "network") for pair in found.pairs]
    alone = set(found.alone_by_convention)
    conflicts = dict(found.shape_conflicts)
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
    notes = tuple(
        f"{name} is a buffer that the network computes itself"
        for name in found.unpaired_buffers_port
    )
    ambiguous = tuple(
        f"{', '.join(pair.reference)} → {', '.join(pair.port)} "
        f"(or {', '.join(pair.ambiguous_with)})"
        for pair in found.pairs
        if pair.ambiguous_with
    )
    return Plan(tuple(moves), tuple(dropped), tuple(missing), notes, ambiguous)


def _renamed(
    infos: list[TensorInfo], rename: Mapping[str, str]
) -> tuple[list[TensorInfo], dict[str, str]]:
    """The tensors under their new names, and the old name of each new one."""
    used: set[str] = set()
    found: list[TensorInfo] = []
    old: dict[str, str] = {}
    for info in infos:
        name = info.name
        for before, after in sorted(rename.items(), key=lambda item: -len(item[0])):
            if name == before or name.startswith(f"{before}."):
                used.add(before)
                name = after + name[len(before) :]
                name = name.removeprefix(".")
                break
        if name in old:
            raise UsageError(
                f"--rename gives both {old[name]!r} and {info.name!r} the name {name!r}",
                "Give them different names.",
            )
        old[name] = info.name
        found.append(dataclasses.replace(info, name=name))
    unused = set(rename) - used
    if unused:
        raise UsageError(
            f"--rename {min(unused)!r} is neither a tensor nor a module of the source",
            "List the names with `isograd params`.",
        )
    return found, old


def _with_old_names(plan: Plan, old: Mapping[str, str]) -> Plan:
    moves = tuple(
        dataclasses.replace(
            move,
            source=tuple(old[name] for name in move.source),
            why="rename" if any(old[name] != name for name in move.source) else move.why,
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
