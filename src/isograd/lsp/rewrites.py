"""Edits that write a use of torch as MindSpore's: what is not replaced keeps every byte.

Edits of several uses compose: an inner one is written into the text of the outer one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.marks import mark, mark_first, marked, packages_in, with_names
from isograd.knowledge.rewrite import (
    ROOMY,
    Call,
    NotRewritten,
    class_of,
    is_closed,
    operand,
    reference,
    rewrite,
)
from isograd.knowledge.store import Knowledge
from isograd.lsp.analysis import Analysis, LocatedUse
from isograd.lsp.imports import Imports, place_for_import

#: The hazard of what changes its receiver: its template is the new value.
_IN_PLACE = "in_place"


@dataclass(frozen=True)
class Edit:
    """New text in place of that from `start` to `end` (offsets)."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Replacement:
    """One use as MindSpore's code, with who may apply it and the imports that it needs."""

    found: LocatedUse
    edit: Edit
    applicability: Applicability
    statements: tuple[str, ...] = ()


class Rewriter:
    """Writes the uses of one text."""

    def __init__(self, analysis: Analysis, knowledge: Knowledge) -> None:
        self._analysis = analysis
        self._knowledge = knowledge
        self.text = analysis.text
        self.imports = Imports(analysis.tree)

    def replacement(
        self, found: LocatedUse, inner: Iterable[Replacement] = ()
    ) -> Replacement | None:
        """The use in MindSpore's words, or None where a person has to write it.

        inner: replacements of other uses, which are written into this one where it holds them.
        """
        entry = self._knowledge.find(found.use.answer.api)
        if entry is None or found.node is None or entry.applicability is Applicability.HAND:
            return None
        within = tuple(inner)
        parent = self._analysis.parents.get(found.node)
        node: ast.expr = found.node
        if isinstance(parent, ast.Call) and parent.func is node:
            node = parent
            made = self._call(entry, found, parent, within)
        else:
            made = self._reference(entry, found, within)
        if made is None:
            return None
        code, applicability = made
        spelled = self._spelled(code)
        if spelled is None:
            return None
        code, statements = spelled
        edit = self._edit(entry, found, node, code, within)
        if edit is None or edit.text == self.text[edit.start : edit.end]:
            return None
        statements |= {text for part in within if _holds(edit, part) for text in part.statements}
        if not self._keeps_comments(edit):
            return None
        return Replacement(found, edit, applicability, tuple(sorted(statements)))

    def edits(self, replacements: Iterable[Replacement]) -> tuple[Edit, ...] | None:
        """The edits of several uses, with their imports once; None if the result is no Python."""
        chosen = list(replacements)
        edits = [
            part.edit
            for part in chosen
            if not any(_holds(other.edit, part) for other in chosen if other is not part)
        ]
        texts = {text for part in chosen for text in part.statements}
        statements = sorted(texts, key=lambda text: (text.startswith("from"), text))
        if statements:
            edits.append(self._import_edit(statements))
        edits.sort(key=lambda edit: (edit.start, edit.end))
        if not edits or any(a.end > b.start for a, b in pairwise(edits)):
            return None
        try:
            ast.parse(apply(self.text, edits))
        except (SyntaxError, ValueError, RecursionError):
            return None
        return tuple(edits)

    def all_safe(self) -> tuple[Edit, ...] | None:
        """Every safe rewrite of the file in one, inner uses first."""
        done: list[Replacement] = []
        ordered = sorted(self._analysis.uses, key=self._width)
        for found in ordered:
            made = self.replacement(found, done)
            if made is not None and made.applicability is Applicability.SAFE:
                done.append(made)
        return self.edits(done)

    def import_edit(self, statement: str) -> Edit:
        """Where one more import goes."""
        return self._import_edit([statement])

    def _width(self, found: LocatedUse) -> int:
        """Inner uses come before the calls that hold them."""
        if found.node is None:
            return 0
        parent = self._analysis.parents.get(found.node)
        node = parent if isinstance(parent, ast.Call) and parent.func is found.node else found.node
        start, end = self._analysis.span(node)
        return end - start

    def _call(
        self, entry: Entry, found: LocatedUse, node: ast.Call, within: tuple[Replacement, ...]
    ) -> tuple[str, Applicability] | None:
        receiver = ""
        if found.is_member and isinstance(found.node, ast.Attribute):
            receiver = self._source(found.node.value, within)
        keywords = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                return None
            keywords[keyword.arg] = self._source(keyword.value, within)
        call = Call(tuple(self._source(part, within) for part in node.args), keywords, receiver)
        result = rewrite(marked(entry), call)
        if isinstance(result, NotRewritten):
            return None
        code = result.code
        if not entry.rewrite:  # made from the target, which stands first
            code = mark_first(code)
        applicability = entry.applicability
        if "inplace" in result.dropped and keywords.get("inplace") != "False":
            if self._is_statement(node):
                return None
            applicability = Applicability.LOOK
        return code, applicability

    def _reference(
        self, entry: Entry, found: LocatedUse, within: tuple[Replacement, ...]
    ) -> tuple[str, Applicability] | None:
        assert found.node is not None
        code = class_of(entry) if self._is_class(found.node) else reference(entry)
        if not code:
            return None
        code = mark(code)
        if "{" in code.replace("{self}", ""):
            return None
        if "{self}" in code:
            if not found.is_member or not isinstance(found.node, ast.Attribute):
                return None
            receiver = self._source(found.node.value, within)
            code = code.replace("{self}", operand(receiver))
        return code, entry.applicability

    def _edit(
        self,
        entry: Entry,
        found: LocatedUse,
        node: ast.expr,
        code: str,
        within: tuple[Replacement, ...],
    ) -> Edit | None:
        """The edit of the call; one in place becomes an assignment of the whole statement."""
        start, end = self._analysis.span(node)
        if entry.hazard != _IN_PLACE:
            return Edit(start, end, code if self._stands(node, code) else f"({code})")
        attribute = found.node
        if not self._is_statement(node) or not isinstance(attribute, ast.Attribute):
            return None
        receiver = attribute.value
        if not found.is_member or not isinstance(
            receiver, (ast.Name, ast.Attribute, ast.Subscript)
        ):
            return None
        return Edit(start, end, f"{self._source(receiver, within)} = {code}")

    def _source(self, node: ast.expr, within: tuple[Replacement, ...]) -> str:
        """The node's own text, with the replacements inside it."""
        start, end = self._analysis.span(node)
        parts = [part.edit for part in within if start <= part.edit.start and part.edit.end <= end]
        outer = [
            edit
            for edit in parts
            if not any(edit is not other and _covers(other, edit) for other in parts)
        ]
        shifted = [replace(edit, start=edit.start - start, end=edit.end - start) for edit in outer]
        return apply(self.text[start:end], shifted)

    def _spelled(self, code: str) -> tuple[str, set[str]] | None:
        """The code with the packages as this file writes them."""
        statements: set[str] = set()
        names: dict[str, str] = {}
        for short in packages_in(code):
            spelling = self.imports.spelling(short)
            if spelling is None:
                return None
            names[short] = spelling.name
            if spelling.statement:
                statements.add(spelling.statement)
        return with_names(code, names), statements

    def _stands(self, node: ast.expr, code: str) -> bool:
        """Whether the code needs no brackets where the node stood."""
        if is_closed(code):
            return True
        parent = self._analysis.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return False
        return isinstance(parent, ROOMY) and "\n" not in code

    def _is_class(self, node: ast.expr) -> bool:
        """Whether a name means a class that is asked for: in isinstance, or an annotation."""
        parent = self._analysis.parents.get(node)
        while isinstance(parent, (ast.Tuple, ast.BinOp)):
            node, parent = parent, self._analysis.parents.get(parent)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            asks = parent.func.id in ("isinstance", "issubclass")
            return asks and len(parent.args) == 2 and parent.args[1] is node
        return isinstance(parent, ast.arg) and parent.annotation is node

    def _is_statement(self, node: ast.expr) -> bool:
        return isinstance(self._analysis.parents.get(node), ast.Expr)

    def _keeps_comments(self, edit: Edit) -> bool:
        return all(
            comment in edit.text
            for at, comment in self._analysis.comments
            if edit.start <= at < edit.end
        )

    def _import_edit(self, statements: list[str]) -> Edit:
        lines = self._analysis.lines
        line, is_behind_import = place_for_import(self._analysis.tree)
        at = lines.start(line)
        newline = lines.newline
        text = "".join(f"{statement}{newline}" for statement in statements)
        if line and at == len(lines.text) and not lines.text.endswith(("\n", "\r")):
            return Edit(at, at, newline + text.removesuffix(newline))
        return Edit(at, at, text if is_behind_import or not line else newline + text)


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _covers(outer: Edit, inner: Edit) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _holds(outer: Edit, inner: Replacement) -> bool:
    return outer is not inner.edit and _covers(outer, inner.edit)
