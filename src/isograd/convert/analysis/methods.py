"""What stands in a method of a class, where a pass may be compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def is_in_method(above: Iterable[ast.AST]) -> bool:
    """Whether a node stands in a class, in another method than `__init__`.

    above: the nodes around it, innermost first.
    """
    function = ""
    for node in above:
        if isinstance(node, ast.ClassDef):
            return function not in ("", "__init__")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
    return False


def is_dict_of_keywords(node: ast.AST) -> bool:
    """`dict(a=x, b=y)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dict"
        and not node.args
        and bool(node.keywords)
        and all(keyword.arg is not None for keyword in node.keywords)
    )


def dicts_of_keywords(tree: ast.Module) -> Iterator[ast.AST]:
    """All such calls in methods, but of a file that has a `dict` of its own."""
    if any(_binds_dict(node) for node in ast.walk(tree)):
        return
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for method in kind.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if method.name != "__init__":
                    yield from filter(is_dict_of_keywords, ast.walk(method))


def _binds_dict(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "dict" and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name) in ("dict", "*")
    name = getattr(node, "name", getattr(node, "arg", ""))
    is_made = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg))
    return is_made and name == "dict"


def unbinds_own_names(node: ast.AST, function: ast.AST) -> bool:
    """`del x, y` of names of a function: it changes no value, and frees memory at most."""
    if not isinstance(node, ast.Delete):
        return False
    shared = {
        name
        for part in ast.walk(function)
        if isinstance(part, (ast.Global, ast.Nonlocal))
        for name in part.names
    }
    return all(isinstance(one, ast.Name) and one.id not in shared for one in node.targets)


def is_row_of_calls(node: ast.AST) -> bool:
    """`a.append(x), b.append(y)` as a statement."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Tuple):
        return False
    return bool(node.value.elts) and all(isinstance(one, ast.Call) for one in node.value.elts)


def left_out(tree: ast.Module) -> Iterator[ast.AST]:
    """What methods say and a static graph lacks, and the port writes otherwise."""
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for method in kind.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if method.name != "__init__":
                    yield from (
                        node
                        for node in ast.walk(method)
                        if is_row_of_calls(node) or unbinds_own_names(node, method)
                    )
