"""Names, attributes and elements that an expression reads, as paths."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated

BUILTINS = frozenset(dir(builtins))


def path_of(node: ast.AST) -> str:
    """`name`, `name.attribute` or `name[0]`, as far as one is written; else empty."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = path_of(node.value)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        before = path_of(node.value)
        return f"{before}[{node.slice.value!r}]" if before else ""
    return ""


def scope_of(loop: Repeated, file: FileEdit) -> ast.AST:
    """The function or module whose names a step reads; a function that is a step's own is it."""
    return loop if isinstance(loop, ast.FunctionDef) else file.tree.scope(loop)


def root_of(node: ast.AST) -> ast.Name | None:
    """The name with which a chain of attributes, elements and calls begins."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node if isinstance(node, ast.Name) else None


def bound_by(statement: ast.AST) -> set[str]:
    """The names that a statement binds, with all that stands in it."""
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del))
    }


def read_by(*nodes: ast.AST) -> set[str]:
    """The names that statements or expressions read; `x += y` reads x."""
    found = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def calls_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """All calls in statements or expressions."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Call):
                yield node


def method_of(call: ast.AST) -> tuple[str, str]:
    """The receiver's path and the method's name of a call; empty where it is none."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return path_of(call.func.value), call.func.attr
    return "", ""


def statement_call(statement: ast.stmt) -> ast.Call | None:
    """The call that is a statement of its own."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    return None
