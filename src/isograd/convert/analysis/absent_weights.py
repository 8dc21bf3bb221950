"""Norms that are made without weight and bias, and whether a project asks any for these.

torch's has None there; MindSpore's BatchNorm1d, BatchNorm2d and GroupNorm hold Parameters that do
not learn.  The runtime's classes have None as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator

from isograd.convert.file_facts import FileFacts
from isograd.convert.places import place
from isograd.convert.tree import is_true
from isograd.scan.values import ANY_MODULE, Instance, Made

#: The classes, and their argument; it is the fourth of each.
NORMS = frozenset(f"torch.nn.{name}" for name in ("BatchNorm1d", "BatchNorm2d", "GroupNorm"))
MADE = "affine"
_PLACE = 3
#: A file without these asks nothing of them.
ASKED = ("weight", "bias")
REASON = "its weight is read, which is None without affine and a Parameter in MindSpore's"


def is_without_weight(node: ast.Call, api: str) -> bool:
    """Whether a call of a class may make a norm without weight and bias."""
    return api in NORMS and _says_so(node, node.args[_PLACE : _PLACE + 1])


def _says_so(node: ast.Call, given: list[ast.expr]) -> bool:
    named = [part.value for part in node.keywords if part.arg == MADE]
    return any(not is_true(value) for value in (*given, *named))


def made_without_weight(file: FileFacts) -> frozenset[str]:
    """The norms that a file may make without weight; "" where what makes them is not known.

    A dictionary of arguments may go to any.
    """
    found: set[str] = set()
    for node in file.tree.of(ast.Call, ast.Dict):
        if isinstance(node, ast.Dict):
            keys = [getattr(key, "value", None) for key in node.keys]
            if any(
                key == MADE and not is_true(value)
                for key, value in zip(keys, node.values, strict=True)
            ):
                found.add("")
        elif api := file.api_of_call(node):
            if is_without_weight(node, api):
                found.add(api)
        elif _says_so(node, []) and not _is_own(node.func, file):
            found.add("")
    return frozenset(found)


def _is_own(node: ast.expr, file: FileFacts) -> bool:
    """Whether a class or function of the project is called, which passes the argument on.

    That is one of the file, one that it imports, or what `super()` finds.
    """
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    if not isinstance(node, ast.Name) or node.id == "super":
        return isinstance(node, ast.Name)
    kinds = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)
    return any(node.id in _names_of(one) for one in file.tree.of(*kinds))


def _names_of(node: ast.AST) -> set[str]:
    """The names that a definition or an import binds; those of Python's own modules not."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return {node.name}
    origin = (getattr(node, "module", "") or "").partition(".")[0]
    aliases: list[ast.alias] = getattr(node, "names", [])
    names = {(one.asname or one.name).partition(".")[0] for one in aliases}
    return set() if origin in sys.stdlib_module_names else names


def reads_absent_weight(file: FileFacts) -> bool:
    """Whether a file reads the weight or bias of what may be such a norm."""
    return any(_may_be_norm(node, owner, file) for node, owner in _read(file))


def _read(file: FileFacts) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`m.weight` and `getattr(m, "weight", None)`, each with its `m`."""
    for node in file.tree.of(ast.Attribute, ast.Call):
        if isinstance(node, ast.Attribute):
            if node.attr in ASKED and isinstance(node.ctx, ast.Load):
                yield node, node.value
        elif getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
            if getattr(node.args[1], "value", ASKED[0]) in ASKED:
                yield node, node.args[0]


def _may_be_norm(node: ast.expr, owner: ast.expr, file: FileFacts) -> bool:
    held = file.layers_held(owner)
    if held:
        return not NORMS.isdisjoint(held)
    if isinstance(node, ast.Call):
        return getattr(owner, "id", "") not in ("self", "cls")
    owners = file.facts.layer_owners
    if place(node) not in owners:
        return False
    found = owners[place(node)]
    if isinstance(found, Instance):
        return False
    return found in (None, ANY_MODULE) or (isinstance(found, Made) and found.api in NORMS)


def norms_with_absent_weights(
    edits: Callable[[Callable[[str], object]], Iterator[FileFacts]],
) -> frozenset[str]:
    """The norms that a project makes without weight, where it reads what may be theirs.

    edits: the files of which a function of their text says yes.
    """
    made = frozenset[str]().union(*map(made_without_weight, edits(lambda text: MADE in text)))
    if not made:
        return made
    asking = edits(lambda text: any(word in text for word in ASKED))
    return made if any(map(reads_absent_weight, asking)) else frozenset()
