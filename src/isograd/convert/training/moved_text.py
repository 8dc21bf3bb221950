"""The text of statements that move from a loop into its compiled step."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable

from isograd.convert.text import Text
from isograd.convert.training.model import StepPlan
from isograd.convert.training.paths import unshared_changes


class MovedText:
    """Texts of one loop's statements, as its step has them."""

    def __init__(self, text: Text, plan: StepPlan) -> None:
        self.text, self.names = text, plan.names
        self.plain = unshared_changes(plan.computed)

    def moved(self, statement: ast.stmt) -> str:
        """A statement with its names in the step, without the indentation of its place."""
        return self.dedented(statement, self.replaced(statement))

    def unchanged(self, statements: Iterable[ast.stmt]) -> list[str]:
        """The lines of statements as they were, without the indentation of their place."""
        own = ((s, self.text.original[slice(*self.text.span(s))]) for s in statements)
        return [line for pair in own for line in self.dedented(*pair).splitlines()]

    def dedented(self, statement: ast.stmt, own: str) -> str:
        """A statement's text without the indentation of its place."""
        start = self.text.line_start(statement.lineno)
        before = self.text.original[start : self.text.span(statement)[0]]
        return textwrap.dedent(before + own) if not before.strip() else own

    def replaced(self, node: ast.AST) -> str:
        """The text of a node as it was, with the names for what it reads from outside."""
        start, end = self.text.span(node)
        inside = []
        for part, name in self.names.places:
            first, last = self.text.span(part)
            if start <= first and last <= end:
                inside.append((first, last, name))
        for one in self.names.reported:
            for at, new in ((one.target, f", {one.name}"), (one.call.func, "_computed")):
                end_of = self.text.span(at)[1]
                inside += [(end_of, end_of, new)] if start <= end_of <= end else []
        for inner in ast.walk(node):
            if isinstance(inner, ast.AugAssign) and inner in self.plain:
                inside += self._written_out(inner)
        text = self.text.original[start:end]
        for first, last, name in sorted(set(inside), reverse=True):
            text = text[: first - start] + name + text[last - start :]
        return text

    def _written_out(self, statement: ast.AugAssign) -> list[tuple[int, int, str]]:
        """`x += y` as `x = x + (y)`.

        MindSpore 2.10 cannot compile a step that differentiates and returns what `+=` has changed.
        """
        _, start = self.text.span(statement.target)
        value, end = self.text.span(statement.value)
        between = self.text.original[start:value]
        operator, _, opened = between.partition("=")
        is_plain = isinstance(statement.value, (ast.Call, ast.Name, ast.Constant)) or "(" in opened
        name = ast.unparse(statement.target)
        left, right = ("", "") if is_plain else ("(", ")")
        new = f" = {name} {operator.strip()} {opened.strip()}{left}"
        return [(start, value, new), *([] if is_plain else [(end, end, right)])]
