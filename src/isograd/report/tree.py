"""A tree's nodes as rows to draw, with the nodes above them and the worst level below each.

Pages draw the tree from a flat list of rows in depth-first order: a network may be nested deeper
than a template may recurse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isograd.report.document import TreeNode


@dataclass(frozen=True)
class Row:
    """One line of the tree.

    name: the last part of the node's path.  below_level: the worst level below it.
    closes: how many branches end after this row.  is_open: whether its branch is shown unfolded.
    """

    node: TreeNode
    name: str
    below_level: int | None
    has_children: bool
    is_open: bool
    closes: int


def tree_rows(nodes: Sequence[TreeNode]) -> list[Row]:
    """All nodes, and those above them, in depth-first order; nothing where there are none."""
    if not nodes:
        return []
    known = {"": TreeNode(""), **{node.path: node for node in nodes}}
    children = _children(known)
    order = _depth_first(children)
    below = _worst_below(order, known, children)
    rows = []
    for position, (path, depth) in enumerate(order):
        next_depth = order[position + 1][1] if position + 1 < len(order) else 0
        rows.append(
            Row(
                node=known.get(path, TreeNode(path)),
                name=path.rpartition(".")[2],
                below_level=below[path],
                has_children=bool(children[path]),
                is_open=depth == 0 or bool(below[path]),
                closes=max(0, depth - next_depth),
            )
        )
    return rows


def _children(known: Mapping[str, TreeNode]) -> dict[str, list[str]]:
    """The nodes below each node, in the order in which they are first named."""
    children: dict[str, list[str]] = {"": []}
    for name in known:
        path = name
        missing = []
        while path and path not in children:
            missing.append(path)
            children[path] = []
            path = path.rpartition(".")[0]
        for child in reversed(missing):
            children[child.rpartition(".")[0]].append(child)
    return children


def _depth_first(children: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
    order = []
    waiting = [("", 0)]
    while waiting:
        path, depth = waiting.pop()
        order.append((path, depth))
        waiting.extend((child, depth + 1) for child in reversed(children[path]))
    return order


def _worst_below(
    order: Sequence[tuple[str, int]],
    known: Mapping[str, TreeNode],
    children: Mapping[str, Sequence[str]],
) -> dict[str, int | None]:
    below: dict[str, int | None] = {}
    for path, _ in reversed(order):
        levels = [below[child] for child in children[path]]
        levels += [known[child].level for child in children[path] if child in known]
        below[path] = max((level for level in levels if level is not None), default=None)
    return below
