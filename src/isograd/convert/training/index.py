"""What a project binds to names and attributes, and where it reads them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from isograd.convert.training.late_changes import Project
from isograd.convert.tree import pairs_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods that put their arguments into a container.
_PUTS = frozenset("append extend insert add update setdefault appendleft put push".split())


@dataclass
class Index(Project):
    """A project's functions and calls, and what its names hold, by the names' last parts.

    values: what assignments bind.  puts: what is put into a container of this name.  arguments:
    parameters of functions, and targets of loops.  reads: nodes that read a name.
    """

    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    of_attributes: dict[str, list[ast.expr]] = field(default_factory=dict)
    puts: dict[str, list[tuple[ast.expr, ast.expr]]] = field(default_factory=dict)
    arguments: set[str] = field(default_factory=set)
    reads: dict[str, list[ast.expr]] = field(default_factory=dict)

    def called(self, call: ast.Call) -> list[_Function]:
        """The functions that a call may run, by their name; of a class its constructor."""
        name = last_name(call.func)
        made = [
            part
            for own in self.classes.get(name, ())
            for part in own.body
            if isinstance(part, _Function) and part.name == "__init__"
        ]
        named = self.functions.get(name, ())
        return [*(function for function in named if self.means(call.func, function)), *made]

    def _note(self, node: ast.AST) -> None:
        super()._note(node)
        if isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.arg):
            self.arguments.add(node.arg)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self.arguments |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            self._bind(node.target, node.iter)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            if node.value is not None:
                self._bind(node.target, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _PUTS:
                given = (*node.args, *(keyword.value for keyword in node.keywords))
                for value in given:
                    self._put(node.func.value, value)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            self.reads.setdefault(last_name(node), []).append(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        for one, own in pairs_of(target, value):
            while isinstance(one, ast.Starred):
                one = one.value
            if isinstance(one, ast.Subscript):
                self._put(one.value, own)
                continue
            self.values.setdefault(last_name(one), []).append(own)
            if isinstance(one, ast.Attribute):
                self.of_attributes.setdefault(one.attr, []).append(own)

    def _put(self, container: ast.expr, value: ast.expr) -> None:
        while isinstance(container, ast.Subscript):
            container = container.value
        self.puts.setdefault(last_name(container), []).append((container, value))


def last_name(node: ast.AST) -> str:
    """The last name of a path."""
    return getattr(node, "attr", "") or getattr(node, "id", "")
