"""One text and what was found in it, each result with its exact place."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from isograd.lsp.positions import Lines
from isograd.scan.hazards import CATALOG
from isograd.scan.model import FileScan, Hazard, Use


@dataclass(frozen=True)
class LocatedUse:
    """A use from `start` to `end` (offsets).

    node: the name or attribute in the tree; None where the name stands in a string.
    is_member: whether the place is the name behind a receiver (`view` of `x.view`).
    """

    use: Use
    start: int
    end: int
    node: ast.expr | None = None
    is_member: bool = False


@dataclass(frozen=True)
class LocatedHazard:
    """A hazard from `start` to `end` (offsets)."""

    hazard: Hazard
    start: int
    end: int


class Analysis:
    """What a scan found in one text; the text never changes, a new one is analysed anew."""

    def __init__(
        self, text: str, tree: ast.Module, scan: FileScan, encoding: str = "utf-16"
    ) -> None:
        self.text = text
        self.tree = tree
        self.lines = Lines(text, encoding)
        self.uses = tuple(_locate_uses(tree, self.lines, scan.uses))
        self.hazards = tuple(self._locate_hazard(hazard) for hazard in scan.hazards)

    def uses_between(self, start: int, end: int) -> list[LocatedUse]:
        """The uses that touch the offsets from `start` to `end`."""
        return [found for found in self.uses if found.start <= end and start <= found.end]

    def hazards_between(self, start: int, end: int) -> list[LocatedHazard]:
        """The hazards that touch the offsets from `start` to `end`."""
        return [found for found in self.hazards if found.start <= end and start <= found.end]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The offsets of a node of the tree."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.lines.from_syntax(node.lineno, node.col_offset),
            self.lines.from_syntax(node.end_lineno, node.end_col_offset),
        )

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def comments(self) -> tuple[tuple[int, str], ...]:
        """Each comment with its offset."""
        found = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text, newline="").readline):
                if token.type == tokenize.COMMENT:
                    line, column = token.start
                    found.append((self.lines.start(line - 1) + column, token.string))
        except (tokenize.TokenError, SyntaxError):
            pass
        return tuple(found)

    def _locate_hazard(self, hazard: Hazard) -> LocatedHazard:
        """The use that the hazard is about, or the first line of the statement."""
        apis = CATALOG[hazard.code].apis if hazard.code in CATALOG else ()
        here = [found for found in self.uses if found.use.line == hazard.line]
        for found in sorted(here, key=lambda found: -len(found.use.answer.api)):
            api = found.use.answer.api
            listed = any(
                api == name or (name[-1:] == "." and api.startswith(name)) for name in apis
            )
            spoken = rf"(?<![\w.]){re.escape(api.removeprefix('torch.'))}(?!\w)"
            if listed or re.search(spoken, hazard.message):
                return LocatedHazard(hazard, found.start, found.end)
        line = max(hazard.line - 1, 0)
        start, end = self.lines.start(line), self.lines.end(line)
        end = next((at for at, _ in self.comments if start <= at < end), end)
        content = self.text[start:end]
        start += len(content) - len(content.lstrip())
        return LocatedHazard(
            hazard, start, max(start, end - (len(content) - len(content.rstrip())))
        )


def _locate_uses(tree: ast.Module, lines: Lines, uses: Iterable[Use]) -> Iterable[LocatedUse]:
    places: dict[int, list[tuple[int, ast.expr, bool]]] = defaultdict(list)
    wanted = {use.line for use in uses}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            continue
        if node.lineno not in wanted and node.end_lineno not in wanted:
            continue
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = lines.from_syntax(node.end_lineno, node.end_col_offset)
        if isinstance(node, ast.Attribute):
            places[end - len(node.attr)].append((end, node, True))
        if not isinstance(node, ast.Attribute) or _is_dotted(node):
            start = lines.from_syntax(node.lineno, node.col_offset)
            places[start].append((end, node, False))
    for use in uses:
        start = lines.start(use.line - 1) + use.column - 1
        yield _locate(use, start, places.get(start, []), lines)


def _locate(
    use: Use, start: int, candidates: list[tuple[int, ast.expr, bool]], lines: Lines
) -> LocatedUse:
    """The candidate that ends with the API's own name, else the longest."""
    last = use.answer.api.rpartition(".")[2]

    def rank(candidate: tuple[int, ast.expr, bool]) -> tuple[bool, int]:
        end, node, _ = candidate
        return isinstance(node, ast.Attribute) and node.attr == last, end

    if not candidates:
        return LocatedUse(use, start, min(start + 1, lines.end(use.line - 1)))
    end, node, is_member = max(candidates, key=rank)
    if isinstance(node, ast.Constant):
        return LocatedUse(use, start, end)
    return LocatedUse(use, start, end, node, is_member)


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
