"""`for opt in optimizers: opt.step()` of a list that is written out, as one call for each.

optimizers = [Adam(net.encoder.parameters()), SGD(net.head.parameters())]
for x, y in loader:
    for opt in optimizers:
        opt.zero_grad()

A compiled step names its optimizers.  Nothing but the place changes: the list stays as it is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from isograd.convert.text import Text
from isograd.convert.tree import Tree, read_tree

#: A text without this has no such loops.
WORD = ".step("
_METHODS = ("zero_grad", "step")
_VIEWS = ("values", "items", "keys")
_ASKING = ("len", "enumerate", "zip", "iter", "range")
_MOST = 8


def unrolled_optimizers(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The edits of a file that call each optimizer by its place."""
    return [*_Writer(read_tree(tree, frozenset()), Text(text)).edits()]


@dataclass
class _Writer:
    """The edits of one file."""

    tree: Tree
    text: Text

    def edits(self) -> Iterator[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        for loop in self.tree.walked(self.tree.module):
            if not isinstance(loop, ast.For) or loop.orelse or not _only_steps(loop):
                continue
            elements = self._elements(loop.iter)
            if not elements:
                continue
            start, end = self.text.span(loop)
            lines = [self._with(part, one) for one in elements for part in loop.body]
            if not any("\n" in line for line in lines):
                yield start, end, f"{self.text.newline}{' ' * loop.col_offset}".join(lines)

    def _elements(self, iterated: ast.expr) -> list[str]:
        """The elements of what a loop goes through, as expressions; empty where not all are known.

        That is a list that one statement of the file binds and nothing changes.
        """
        is_view = isinstance(iterated, ast.Call) and getattr(iterated.func, "attr", "") == "values"
        held = iterated.func.value if is_view else iterated  # type: ignore[attr-defined]  # a method
        is_own = isinstance(held, ast.Attribute) and getattr(held.value, "id", "") == "self"
        if not (isinstance(held, ast.Name) or is_own):
            return []
        made: list[ast.expr] = []
        for node in self._same(held):
            parent = self.tree.parents[node]
            if isinstance(node.ctx, ast.Load):
                if not self._is_read(node, parent):
                    return []
            elif isinstance(parent, ast.Assign) and parent.targets == [node]:
                made.append(parent.value)
            else:
                return []
        return _places(ast.unparse(held), made[0], is_view) if len(made) == 1 else []

    def _same(self, held: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
        """What may be the same list: a name or an attribute wherever it stands in the file."""
        for node in self.tree.walked(self.tree.module):
            if isinstance(held, ast.Name) and isinstance(node, ast.Name) and node.id == held.id:
                yield node
            if isinstance(held, ast.Attribute) and isinstance(node, ast.Attribute):
                if node.attr == held.attr:
                    yield node

    def _is_read(self, node: ast.expr, parent: ast.AST) -> bool:
        """Whether a list is only looked at: gone through, asked for an element or its length."""
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.iter is node
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _VIEWS
        return isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in _ASKING

    def _with(self, statement: ast.stmt, element: str) -> str:
        """A call of the loop's name as a call of an element."""
        call = statement.value  # type: ignore[attr-defined]  # `_only_steps`
        after, end = self.text.span(call.func.value)[1], self.text.span(statement)[1]
        return element + self.text.original[after:end]


def _only_steps(loop: ast.For) -> bool:
    """Whether a loop calls `zero_grad` and `step` of what it goes through, and nothing else."""
    if not isinstance(loop.target, ast.Name):
        return False
    for statement in loop.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        method = call.func if isinstance(call, ast.Call) else None
        if not isinstance(method, ast.Attribute) or method.attr not in _METHODS:
            return False
        if getattr(method.value, "id", "") != loop.target.id:
            return False
        given = [*call.args, *(part.value for part in call.keywords)]  # type: ignore[union-attr]
        if not all(isinstance(one, ast.Constant) for one in given):
            return False
    return True


def _places(held: str, made: ast.expr, is_view: bool) -> list[str]:
    """The elements of a list or of a dictionary's values that are written out."""
    if is_view:
        keys = made.keys if isinstance(made, ast.Dict) else []
        values = [getattr(key, "value", None) for key in keys]
        is_known = all(isinstance(key, ast.Constant) for key in keys)
        is_once = len(set(values)) == len(values) <= _MOST
        return [f"{held}[{value!r}]" for value in values] if is_known and is_once else []
    if not isinstance(made, (ast.List, ast.Tuple)) or len(made.elts) > _MOST:
        return []
    if any(isinstance(one, ast.Starred) for one in made.elts):
        return []
    return [f"{held}[{place}]" for place in range(len(made.elts))]
