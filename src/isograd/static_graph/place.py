"""One construct in a copy of its function, with the means to write around it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from isograd.static_graph.scope import blocks
from isograd.static_graph.values import Locals

Rewrite = Callable[["Place"], bool]
_MADE = "isograd_value"


class Place:
    """One construct in a copy of its function, with the means to write around it."""

    def __init__(self, own: Locals, function: ast.FunctionDef, node: ast.AST) -> None:
        self.own, self.function, self.node = own, function, node
        self.parents = {
            id(child): parent
            for parent in ast.walk(function)
            for child in ast.iter_child_nodes(parent)
        }
        self.count = sum(1 for n in ast.walk(function) if getattr(n, "id", "").startswith(_MADE))

    def statement(self) -> ast.stmt | None:
        """The statement around the construct."""
        node: ast.AST | None = self.node
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(id(node))
        return node

    def body_of(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """The list that holds a statement."""
        parent = self.parents.get(id(statement), self.function)
        return next((b for b in blocks(parent) if any(s is statement for s in b)), None)

    def replace_statement(self, text: str | list[ast.stmt]) -> bool:
        """Put statements in the place of the one around the construct."""
        statement = self.statement()
        body = self.body_of(statement) if statement is not None else None
        if statement is None or body is None:
            return False
        at = next(i for i, s in enumerate(body) if s is statement)
        new = ast.parse(text).body if isinstance(text, str) else text
        body[at : at + 1] = new or [ast.Pass()]
        return True

    def before(self, text: str) -> bool:
        """Put statements before the one around the construct."""
        statement = self.statement()
        body = self.body_of(statement) if statement is not None else None
        if statement is None or body is None or isinstance(statement, ast.While):
            return False
        at = next(i for i, s in enumerate(body) if s is statement)
        body[at:at] = ast.parse(text).body
        return True

    def put(self, text: str | ast.expr) -> bool:
        """Put an expression in the construct's place."""
        new = ast.parse(text, mode="eval").body if isinstance(text, str) else text
        parent = self.parents.get(id(self.node))
        if parent is None:
            return False
        for field, value in ast.iter_fields(parent):
            if value is self.node:
                setattr(parent, field, new)
                return True
            if isinstance(value, list):
                for i, part in enumerate(value):
                    if part is self.node:
                        value[i] = new
                        return True
        return False

    def name(self) -> str:
        """A name that the function does not use."""
        self.count += 1
        return f"{_MADE}_{self.count}"

    def operators(self) -> str:
        """How this file names mindspore.ops; empty where it does not."""
        return next((k for k, v in self.own.file.imports.items() if v == "mindspore.ops"), "")


def written(node: ast.AST) -> str:
    return ast.unparse(node)
