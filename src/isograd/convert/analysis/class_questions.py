"""Where a project asks whether what a function is given is a class: `isinstance(layer, type)`.

What makes MindSpore's layer by torch's arguments is a function, which such code tells from torch's
class; it is then given a class (`composites.layer_class`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from isograd.scan.values import ClassInfo, FunctionInfo, Instance, Made, Plain, Tensor, Value

_OF_CLASSES = frozenset(("issubclass", "isclass", "isfunction"))
_KINDS = frozenset(("type", "FunctionType"))
#: What is no class of torch's: values, instances, and functions and classes of the project.
_NO_CLASSES = (Plain, Tensor, Instance, Made, FunctionInfo, ClassInfo)
#: The names without which no text holds such a question.
WORDS = (*_OF_CLASSES, *_KINDS)


def asking_functions(module: ast.Module) -> frozenset[str]:
    """The functions that ask it of a parameter, by name; a constructor by the name of its class."""
    found: set[str] = set()
    waiting: list[tuple[ast.AST, str, frozenset[str]]] = [(module, "", frozenset())]
    while waiting:
        node, name, parameters = waiting.pop()
        if isinstance(node, ast.ClassDef):
            name, parameters = node.name, frozenset()
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            name = name if node.name == "__init__" else node.name
            parameters = frozenset(part.arg for part in given)
        elif isinstance(node, ast.Call) and _asked(node) in parameters:
            found.add(name)
        waiting += [(child, name, parameters) for child in ast.iter_child_nodes(node)]
    return frozenset(found)


def _asked(node: ast.Call) -> str:
    """The name of which a call asks whether it is a class or a function; empty if it does not."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if not node.args or not isinstance(node.args[0], ast.Name):
        return ""
    kinds = ast.walk(node.args[1]) if len(node.args) == 2 else ()
    is_kind = called == "isinstance" and any(
        getattr(part, "attr", getattr(part, "id", "")) in _KINDS for part in kinds
    )
    return node.args[0].id if called in _OF_CLASSES or is_kind else ""


def given_to(node: ast.Call, values: Iterable[Value]) -> tuple[str, bool]:
    """The name that is called, and whether one of the arguments may be a class of torch's."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return called, not all(isinstance(value, _NO_CLASSES) for value in values)
