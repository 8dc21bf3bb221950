"""The modules of the reference as a tree, with the worst ratio of each in every stage.

Pages draw the tree from a flat list of rows in depth-first order: a network may be nested deeper
than a template may recurse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from isograd.model import ModuleRatio, VerifyReport

#: Ratios up to the first are noise; from the second on a colour no longer changes.
NOISE_RATIO = 1.0
FULL_RATIO = 1e4
#: Steps of colour between the two.
LEVELS = 8


@dataclass(frozen=True)
class Chip:
    """One measurement of a module: its stage with mode, its ratio and its level of colour."""

    label: str
    ratio: float | None
    level: int | None


@dataclass(frozen=True)
class Row:
    """One line of the tree.

    name: the last part of path.  level: colour of the module itself, below_level: of the worst
    module below it; None is grey, 0 within the noise, LEVELS the worst.
    closes: how many branches end after this row.  is_open: whether its branch is shown unfolded.
    """

    path: str
    name: str
    kind: str
    port_module: str | None
    depth: int
    chips: tuple[Chip, ...]
    level: int | None
    below_level: int | None
    has_children: bool
    is_open: bool
    is_divergent: bool
    closes: int


def ratio_level(ratio: float | None) -> int | None:
    """The colour of a ratio, from 0 (noise) to LEVELS on a logarithmic scale; None is grey."""
    if ratio is None:
        return None
    if math.isnan(ratio) or ratio >= FULL_RATIO:
        return LEVELS
    if ratio <= NOISE_RATIO:
        return 0
    share = math.log(ratio / NOISE_RATIO) / math.log(FULL_RATIO / NOISE_RATIO)
    return max(1, math.ceil(share * LEVELS))


def module_rows(report: VerifyReport) -> list[Row]:
    """All modules that the report names, and the modules above them, in depth-first order."""
    measured: dict[str, list[ModuleRatio]] = {"": []}
    for module in report.modules:
        measured.setdefault(module.module, []).append(module)
    divergent = _divergent_levels(report)
    for name in divergent:
        measured.setdefault(name, [])
    if len(measured) == 1 and not measured[""]:
        return []
    children = _children(measured)
    order = _depth_first(children)
    below = _worst_below(order, measured, children, divergent)
    rows = []
    for position, (path, depth) in enumerate(order):
        next_depth = order[position + 1][1] if position + 1 < len(order) else 0
        entries = measured.get(path, [])
        described = next(iter(entries), None)
        rows.append(
            Row(
                path=path,
                name=path.rpartition(".")[2],
                kind=described.kind if described else "",
                port_module=described.port_module if described else None,
                depth=depth,
                chips=tuple(_chip(entry) for entry in entries),
                level=_own_level(path, measured, divergent),
                below_level=below[path],
                has_children=bool(children[path]),
                is_open=depth == 0 or bool(below[path]),
                is_divergent=path in divergent,
                closes=max(0, depth - next_depth),
            )
        )
    return rows


def _divergent_levels(report: VerifyReport) -> dict[str, int]:
    """The level of each module with a divergent finding: never that of noise, never grey."""
    levels: dict[str, int] = {}
    for finding in report.findings:
        if finding.diverges:
            level = ratio_level(finding.ratio)
            level = LEVELS if level is None else max(1, level)
            levels[finding.module] = max(level, levels.get(finding.module, 0))
    return levels


def _children(names: dict[str, list[ModuleRatio]]) -> dict[str, list[str]]:
    """The modules below each module, in the order in which they are first named."""
    children: dict[str, list[str]] = {"": []}
    for name in names:
        path = name
        missing = []
        while path and path not in children:
            missing.append(path)
            children[path] = []
            path = path.rpartition(".")[0]
        for child in reversed(missing):
            children[child.rpartition(".")[0]].append(child)
    return children


def _depth_first(children: dict[str, list[str]]) -> list[tuple[str, int]]:
    order = []
    waiting = [("", 0)]
    while waiting:
        path, depth = waiting.pop()
        order.append((path, depth))
        waiting.extend((child, depth + 1) for child in reversed(children[path]))
    return order


def _worst_below(
    order: list[tuple[str, int]],
    measured: dict[str, list[ModuleRatio]],
    children: dict[str, list[str]],
    divergent: dict[str, int],
) -> dict[str, int | None]:
    below: dict[str, int | None] = {}
    for path, _ in reversed(order):
        levels = [below[child] for child in children[path]]
        levels += [_own_level(child, measured, divergent) for child in children[path]]
        below[path] = max((level for level in levels if level is not None), default=None)
    return below


def _own_level(
    path: str, measured: dict[str, list[ModuleRatio]], divergent: dict[str, int]
) -> int | None:
    levels = [ratio_level(entry.ratio) for entry in measured.get(path, [])]
    levels.append(divergent.get(path))
    return max((level for level in levels if level is not None), default=None)


def _chip(entry: ModuleRatio) -> Chip:
    label = entry.stage.value if entry.mode is None else f"{entry.stage.value} {entry.mode}"
    return Chip(label, entry.ratio, ratio_level(entry.ratio))
