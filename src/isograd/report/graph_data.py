"""A graph as the data that the page's script draws: every module above a node is a node, too."""

from __future__ import annotations

import json
from typing import Any

from isograd.report.document import Graph, GraphNode, GraphSide
from isograd.report.words import printable

#: Nodes of one side that a page carries.
MOST_NODES = 20_000


def graph_json(graph: Graph) -> str:
    """The graph as JSON in ASCII; an edge whose ends are not both on the page is left out."""
    value = {
        "colourings": [printable(name) for name in graph.colourings],
        "sides": [_side(side, len(graph.colourings)) for side in graph.sides],
    }
    return json.dumps(value, separators=(",", ":"))


def _side(side: GraphSide, colourings: int) -> dict[str, Any]:
    nodes = side.nodes[:MOST_NODES]
    edges = [edge for edge in side.edges if max(edge) < len(nodes)]
    return {
        "title": printable(side.title),
        "nodes": [_node(node, colourings) for node in nodes],
        "edges": edges,
        "more": len(side.nodes) - len(nodes),
    }


def _node(node: GraphNode, colourings: int) -> list[Any]:
    levels = [*node.levels, *[None] * colourings][:colourings]
    return [printable(node.path), printable(node.kind), printable(node.detail), levels]
