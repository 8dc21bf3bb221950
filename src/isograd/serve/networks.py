"""The network that a report or a recording is about: as a tree, and as a graph of its modules.

What runs and who feeds whom comes from recordings (`isograd record`, `isograd verify --keep`), the
colours from the reports of verify, profile and watch that name the same modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from isograd.errors import IsogradError
from isograd.model import ModuleRatio, Stage
from isograd.report.document import Graph, GraphNode, GraphSide, Medium, Section, Tree, TreeNode
from isograd.report.levels import log_level
from isograd.serve.catalogue import Catalogue
from isograd.serve.model import Item, Kind
from isograd.serve.reports import data_or_nothing, entries, number
from isograd.verify.module_tree import divergent_levels, nodes_of

#: The anchor of trees of modules, by which links find a module.
MODULE = "module"
_DIVERGENT = ("effective", "masked")
#: Shares of the step's time between which the colours of a profile rise.
_LEAST_SHARE, _FULL_SHARE = 0.01, 0.5
_ALERT_LEVEL, _NOTICE_LEVEL = 8, 3
_COLOURING = (Kind.VERIFY, Kind.PROFILE, Kind.WATCH)
#: Reports that a page of a network looks at for colours.
_MOST_REPORTS = 12


@dataclass(frozen=True)
class Colouring:
    """What one report says of modules: a level by path, of the reference and of the port."""

    name: str
    reference: Mapping[str, int | None]
    port: Mapping[str, int | None]


def verify_tree(data: Mapping[str, Any]) -> list[TreeNode]:
    """The modules of a report of verify, with their worst ratios."""
    stages = {stage.value: stage for stage in Stage}
    ratios = [
        ModuleRatio(
            str(one.get("module", "")),
            str(one.get("kind") or ""),
            None if one.get("port_module") is None else str(one["port_module"]),
            stages[str(one["stage"])],
            number(one.get("ratio")),
            None if one.get("mode") is None else str(one["mode"]),
        )
        for one in entries(data, "modules")
        if str(one.get("stage")) in stages
    ]
    divergent = (
        (str(one.get("module", "")), number(one.get("ratio")))
        for one in entries(data, "findings")
        if one.get("severity") in _DIVERGENT
    )
    return nodes_of(ratios, divergent_levels(divergent))


def profile_tree(data: Mapping[str, Any]) -> list[TreeNode]:
    """The modules of a report of profile, coloured by their share of the greatest one's time."""
    found = entries(data, "modules")
    times = {
        str(one.get("module", "")): (
            number(one.get("forward_s")) or 0.0,
            number(one.get("backward_s")) or 0.0,
        )
        for one in found
    }
    whole = max((forward + backward for forward, backward in times.values()), default=0.0)
    return [
        TreeNode(
            path,
            detail=f"forward {forward * 1e3:.3g} ms, backward {backward * 1e3:.3g} ms",
            level=log_level((forward + backward) / whole, _LEAST_SHARE, _FULL_SHARE)
            if whole
            else None,
        )
        for path, (forward, backward) in times.items()
    ]


def watch_tree(data: Mapping[str, Any]) -> list[TreeNode]:
    """The modules that alerts name."""
    worst: dict[str, list[Mapping[str, Any]]] = {}
    for one in entries(data, "alerts"):
        if isinstance(one.get("module"), str) and one["module"]:
            worst.setdefault(one["module"], []).append(one)
    return [
        TreeNode(
            path,
            detail=", ".join(dict.fromkeys(str(one.get("code", "")) for one in alerts)),
            level=_ALERT_LEVEL
            if any(one.get("severity") == "alert" for one in alerts)
            else _NOTICE_LEVEL,
        )
        for path, alerts in worst.items()
    ]


_TREES = {Kind.VERIFY: verify_tree, Kind.PROFILE: profile_tree, Kind.WATCH: watch_tree}
_LEGENDS = {
    Kind.VERIFY: ("1 × the rounding noise", "10,000 ×"),
    Kind.PROFILE: ("1 % of the time", "50 %"),
    Kind.WATCH: ("a notice", "an alert"),
}


def has_tree(item: Item) -> bool:
    """Whether a report's modules are drawn as a tree."""
    return item.kind in _TREES


def report_sections(catalogue: Catalogue, item: Item) -> list[Section]:
    """The tree of a report's modules, and their graph where the network was recorded."""
    data = data_or_nothing(item)
    nodes = _TREES[item.kind](data) if item.kind in _TREES else []
    if not nodes:
        return []
    tree = Tree("Modules", nodes, anchor=MODULE, legend=_LEGENDS[item.kind])
    sides = _recorded_sides(catalogue, item, {node.path for node in nodes})
    return [*_graph(sides, [colouring(item)]), tree]


def recording_sections(catalogue: Catalogue, item: Item) -> list[Section]:
    """The network of a recording beside its partner's, coloured by every report that fits."""
    sides = _pair(catalogue, item)
    known = {node.path for _, side in sides for node in side.nodes}
    known |= {path.rpartition(".")[0] for path in known}
    colourings = []
    for report in _near(item, (one for kind in _COLOURING for one in catalogue.of_kind(kind))):
        found = colouring(report)
        if known & set(found.reference):
            colourings.append(found)
    tree = Tree("Modules", _structure_nodes(item), anchor=MODULE)
    return [*_graph(sides, colourings), tree]


def colouring(item: Item) -> Colouring:
    """The levels of a report's modules."""
    data = data_or_nothing(item)
    nodes = _TREES[item.kind](data)
    levels = {node.path: node.level for node in nodes}
    names = {
        str(one.get("module", "")): str(one["port_module"])
        for one in entries(data, "modules")
        if one.get("port_module") is not None
    }
    port = {names.get(path, path): level for path, level in levels.items()}
    return Colouring(f"{item.kind.value} {item.name}", levels, port)


def _graph(sides: Sequence[tuple[bool, GraphSide]], colours: Sequence[Colouring]) -> list[Section]:
    coloured = [
        replace(side, nodes=[_coloured(node, is_port, colours) for node in side.nodes])
        for is_port, side in sides
        if side.nodes
    ]
    if not coloured:
        return []
    note = "A module that contains others opens by a click or Enter; lines lead from what feeds."
    names = [one.name for one in colours]
    return [Graph("Network", coloured, names, note=note, anchor="network", medium=Medium.PAGE)]


def _coloured(node: GraphNode, is_port: bool, colours: Sequence[Colouring]) -> GraphNode:
    levels = [(one.port if is_port else one.reference).get(node.path) for one in colours]
    return replace(node, levels=tuple(levels))


def _recorded_sides(
    catalogue: Catalogue, item: Item, modules: set[str]
) -> list[tuple[bool, GraphSide]]:
    """The nearest recording that has the report's modules, with its partner."""
    for recording in _near(item, catalogue.of_kind(Kind.RECORDING)):
        if recording.path.name == "port":
            continue
        names = {node.path for node in _structure_nodes(recording)}
        if modules <= names | {""}:
            return _pair(catalogue, recording)
    return []


def _pair(catalogue: Catalogue, item: Item) -> list[tuple[bool, GraphSide]]:
    """A recording, and the other side that `isograd verify --keep` wrote beside it."""
    beside = {
        one.path.name: one
        for one in catalogue.of_kind(Kind.RECORDING)
        if one.path.parent == item.path.parent
    }
    if item.path.name in ("reference", "port") and {"reference", "port"} <= beside.keys():
        return [(name == "port", _side(beside[name], name)) for name in ("reference", "port")]
    return [(False, _side(item, item.name))]


def _near(item: Item, others: Iterable[Item]) -> list[Item]:
    """Others by how many folders they share with an item, the nearest first."""
    own = item.path.parts

    def shared(other: Item) -> int:
        pairs = zip(own, other.path.parts, strict=False)
        return next((at for at, (a, b) in enumerate(pairs) if a != b), len(own))

    return sorted(others, key=lambda other: -shared(other))[:_MOST_REPORTS]


@lru_cache(maxsize=32)
def _structure_nodes(item: Item) -> list[TreeNode]:
    from isograd.recording.reader import Recording

    try:
        modules = Recording(str(item.path)).structure.modules
    except IsogradError:
        return []
    return [TreeNode(one.name, one.kind, one.settings[:80]) for one in modules]


@lru_cache(maxsize=32)
def _side(item: Item, title: str) -> GraphSide:
    from isograd.serve.data_flow import flow_of

    return flow_of(item.path, title)
