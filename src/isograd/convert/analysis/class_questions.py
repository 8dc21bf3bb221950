"""Where a project asks whether what a function is given is a class: `isinstance(layer, type)`.

What makes MindSpore's layer by torch's arguments is a function, which such code tells from torch's
class; it is then given a class of the port.  That makes MindSpore's layers, so a question for an
instance of a class that only the run shows (`isinstance(layer, norm)`) is the runtime's.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Set
from dataclasses import dataclass

from isograd.convert.places import Place, place
from isograd.scan.state import State, qualified
from isograd.scan.values import (
    ClassInfo,
    Foreign,
    FunctionInfo,
    Instance,
    Made,
    Plain,
    Tensor,
    Value,
)
from isograd.static_graph.scope import children

_OF_CLASSES = frozenset(("issubclass", "isclass", "isfunction"))
_KINDS = frozenset(("type", "FunctionType"))
#: What is no class of torch's: values, instances, and functions and classes of the project.
_NO_CLASSES = (Plain, Tensor, Instance, Made, FunctionInfo, ClassInfo)
_LOOKED_AT = frozenset(
    (ast.ClassDef, ast.arg, ast.Name, ast.Import, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)
)
#: The names without which no text holds such a question.
WORDS = ("isinstance", "inspect", *_OF_CLASSES)


@dataclass(frozen=True)
class Questions:
    """What a file asks of classes.

    functions: those that ask of a parameter whether it is a class, by name; a constructor by the
    name of its class.  of_variables: the calls that ask for an instance of a class that only the
    run shows: `isinstance(layer, norm)`.  inspects: it imports `inspect`.
    """

    functions: frozenset[str] = frozenset()
    of_variables: frozenset[Place] = frozenset()
    inspects: bool = False


def questions(module: ast.Module, state: State) -> Questions:
    """The questions of a file; state: what is known at its end."""
    found: set[str] = set()
    local: set[str] = set()
    asked: list[ast.Call] = []
    others: set[str] = set()
    waiting: list[tuple[ast.AST, str, frozenset[str]]] = [(module, "", frozenset())]
    while waiting:
        node, name, parameters = waiting.pop()
        if node.__class__ not in _LOOKED_AT:
            pass
        elif isinstance(node, ast.ClassDef):
            name, parameters = node.name, frozenset()
        elif isinstance(node, ast.arg):
            local.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            local.add(node.id)
        elif isinstance(node, ast.Import):
            others |= {one.asname or one.name for one in node.names if _is_foreign(one, state)}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            name = name if node.name == "__init__" else node.name
            parameters = frozenset(part.arg for part in given)
        elif isinstance(node, ast.Call):
            if _asked(node) in parameters:
                found.add(name)
            if getattr(node.func, "id", "") == "isinstance" and len(node.args) == 2:
                asked.append(node)
        waiting += [(child, name, parameters) for child in children(node)]
    named = {(line, column) for line, column, *_ in state.uses} if asked else set()
    is_known = functools.partial(_is_class, state=state, named=named, local=local, others=others)
    unknown = (place(call) for call in asked if not is_known(call.args[1]))
    return Questions(frozenset(found), frozenset(unknown), "inspect" in state.roots)


def _is_foreign(one: ast.alias, state: State) -> bool:
    """Whether `import one` takes what is neither torch's nor the project's."""
    return isinstance(qualified(state, one.name), Foreign) and (
        bool(one.asname) or "." not in one.name
    )


def _is_class(
    node: ast.expr,
    *,
    state: State,
    named: Set[tuple[int, int]],
    local: Set[str],
    others: Set[str],
) -> bool:
    """Whether what follows in `isinstance(x, …)` is nothing but classes by their own names.

    named: where APIs of torch are named.  local: names that assignments and parameters bind.
    others: names of other libraries, which any `import` of the file binds.
    """
    known = functools.partial(_is_class, state=state, named=named, local=local, others=others)
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(known, node.elts))
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id in local:
        return False  # which another class may take
    if (node.lineno, node.col_offset) in named:
        return not isinstance(node, ast.BinOp) or known(node.right)
    if not isinstance(root, ast.Name):
        return False
    value = state.env[root.id]
    if value is None and root is not node and root.id in others:
        return True
    return isinstance(value, Foreign) or (isinstance(value, ClassInfo) and root is node)


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
