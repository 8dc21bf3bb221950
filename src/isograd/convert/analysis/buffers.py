"""Which buffers the modules of a file register, and where attributes of modules are set."""

from __future__ import annotations

import ast

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
