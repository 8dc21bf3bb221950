"""Which buffers the modules of a file register, and where attributes of modules are set."""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree
from isograd.scan.values import Instance, Made, Value, is_module
from isograd.static_graph.scope import children

#: What a file with buffers has in its text.
WORD = "uffer("


def buffers_of(module: ast.Module) -> frozenset[tuple[str, str]]:
    """The buffers that a file registers by names written out, each with its class.

    Outside a class the class is "".
    """
    return frozenset(_in(module, ""))


def _in(node: ast.AST, owner: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in children(node):
        if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "register_buffer":
            given = [*part.args[:1], *(one.value for one in part.keywords if one.arg == "name")]
            found += [(owner, name.value) for name in given if _is_text(name)]  # type: ignore[attr-defined]
        elif isinstance(part, ast.Assign) and _makes_buffer(part.value):
            found += [(owner, one.attr) for one in part.targets if isinstance(one, ast.Attribute)]
        found += _in(part, part.name if isinstance(part, ast.ClassDef) else owner)
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _makes_buffer(node: ast.expr) -> bool:
    """`nn.Buffer(…)`."""
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == "Buffer"


def may_be_module(owner: Value) -> bool:
    """Whether a value may be a module: it is one, or nothing is known of it."""
    return owner is None or (isinstance(owner, (Made, Instance)) and is_module(owner))


def are_apart(one: ast.AST, other: ast.AST, tree: Tree) -> bool:
    """Whether two nodes of a function stand in the two branches of one `if`, and in no loop."""
    ways = _branches(other, tree)
    return any(
        ways.get(choice, branch) != branch for choice, branch in _branches(one, tree).items()
    )


def _branches(node: ast.AST, tree: Tree) -> dict[ast.If, str]:
    """The branch of each `if` of its function in which a node stands; none of one in a loop."""
    found: dict[ast.If, str] = {}
    inner = node
    for around in tree.above(node):
        if isinstance(around, (ast.For, ast.AsyncFor, ast.While)):
            found.clear()
        elif isinstance(around, ast.If) and inner is not around.test:
            found[around] = "body" if inner in around.body else "else"
        elif isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        inner = around
    return found
