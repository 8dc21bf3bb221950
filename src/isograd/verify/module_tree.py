"""The modules of the reference as nodes of a tree, with the worst ratio of each in every stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isograd.model import ModuleRatio, VerifyReport
from isograd.report.document import Chip, TreeNode
from isograd.report.levels import LEVELS, log_level
from isograd.report.words import ratio_text

#: Ratios up to the first are noise; from the second on a colour no longer changes.
NOISE_RATIO = 1.0
FULL_RATIO = 1e4


def ratio_level(ratio: float | None) -> int | None:
    """The colour of a ratio, from 0 (noise) to LEVELS on a logarithmic scale; None is grey."""
    return log_level(ratio, NOISE_RATIO, FULL_RATIO)


def module_nodes(report: VerifyReport) -> list[TreeNode]:
    """All modules that the report names, in the order in which it names them."""
    return nodes_of(report.modules, _divergent_levels(report))


def nodes_of(modules: Sequence[ModuleRatio], divergent: Mapping[str, int]) -> list[TreeNode]:
    """The nodes of measured modules; divergent: the levels of those with a divergent finding."""
    measured: dict[str, list[ModuleRatio]] = {}
    for module in modules:
        measured.setdefault(module.module, []).append(module)
    for name in divergent:
        measured.setdefault(name, [])
    return [_node(path, entries, divergent.get(path)) for path, entries in measured.items()]


def _node(path: str, entries: list[ModuleRatio], divergent: int | None) -> TreeNode:
    port = entries[0].port_module if entries else None
    levels = [*(ratio_level(entry.ratio) for entry in entries), divergent]
    return TreeNode(
        path,
        kind=entries[0].kind if entries else "",
        detail=f"→ {port}" if port is not None and port != path else "",
        level=max((level for level in levels if level is not None), default=None),
        chips=tuple(_chip(entry) for entry in entries),
        is_marked=divergent is not None,
    )


def _divergent_levels(report: VerifyReport) -> dict[str, int]:
    """The level of each module with a divergent finding."""
    found = ((one.module, one.ratio) for one in report.findings if one.diverges)
    return divergent_levels(found)


def divergent_levels(ratios: Iterable[tuple[str, float | None]]) -> dict[str, int]:
    """The level of each module by its worst ratio: never that of noise, never grey."""
    levels: dict[str, int] = {}
    for module, ratio in ratios:
        level = ratio_level(ratio)
        level = LEVELS if level is None else max(1, level)
        levels[module] = max(level, levels.get(module, 0))
    return levels


def _chip(entry: ModuleRatio) -> Chip:
    label = entry.stage.value if entry.mode is None else f"{entry.stage.value} {entry.mode}"
    text = "not compared" if entry.ratio is None else ratio_text(entry.ratio)
    return Chip(label, text, ratio_level(entry.ratio))
