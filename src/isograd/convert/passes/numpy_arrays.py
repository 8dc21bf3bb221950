"""What of a program is an array of numpy's or scipy's, or a range: by what makes it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from isograd.convert.file import FileEdit
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import (
    imported_from,
    names_of,
    pairs_of,
)

_OF_NUMBERS = ("numpy", "scipy")
#: Methods of numpy's random generators that give positions.
_OF_GENERATORS = frozenset("choice permutation integers randint".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a part of an index is an array, a number or a range by what it was made by."""
    if not _has_arrays(file):
        return False
    if isinstance(node, ast.BinOp):
        return _is_arithmetic_of_numpy(node, file)
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
        return bool(parts) and all(is_of_numpy(part, file) for part in parts)
    if isinstance(node, (ast.Slice, ast.Compare, ast.ListComp, ast.IfExp)):
        return any(is_of_numpy(part, file) for part in _deciding(node))
    if _is_range(node) or _is_call_of_numpy(node, file):
        return True
    while isinstance(node, ast.Subscript):
        node = node.value
    if _is_own(node):
        held = _made_by_numpy(file).get(ast.unparse(node), frozenset())
        return any(kind in held for kind in _classes(node, file))
    if not isinstance(node, ast.Name):
        return _is_call_of_numpy(node, file)
    loop = file.tree.loop(node)
    if isinstance(loop, ast.comprehension):
        pairs = _gone_through(loop.target, loop.iter)
        return any(node.id in names_of(one) and is_of_numpy(of, file) for one, of in pairs)
    functions = _made_by_numpy(file).get(node.id, frozenset())
    if not functions:
        return False
    return (file.tree.function(node) if file.tree.is_own(node.id, node) else None) in functions


def is_array(node: ast.expr, file: FileEdit) -> bool:
    """Whether what is indexed is an array whatever its name was bound to, and never a tensor."""
    if not is_of_numpy(node, file):
        return False
    root = node
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        if _is_own(root):
            return _holds_arrays_alone(root, file)
        if not isinstance(root, ast.Call):
            root = root.value
            continue
        root = root.func
        if isinstance(root, ast.Name):
            return root.id in _names_of_numpy(file)
        if getattr(root, "attr", "") == "numpy":
            return True
    if not isinstance(root, ast.Name):
        return True
    return all(is_of_numpy(value, file) for value in scope_of(node, file).values_of(root.id))


def _is_own(node: ast.AST) -> bool:
    """Whether this is `self.name`."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


def _classes(node: ast.AST, file: FileEdit) -> list[ast.ClassDef]:
    """The class around a node, and those of the file from which it derives."""
    owner = file.tree.owner(node)
    found = [] if owner is None else [owner]
    own = {kind.name: kind for kind in file.tree.of(ast.ClassDef)}
    for kind in found:
        bases = [own.get(getattr(base, "id", "")) for base in kind.bases]
        found += [base for base in bases if base is not None and base not in found]
    return found


def _holds_arrays_alone(node: ast.expr, file: FileEdit) -> bool:
    """Whether all that a class binds to `self.name` is numpy's."""
    assert isinstance(node, ast.Attribute)
    kinds = _classes(node, file)
    values = [value for kind in kinds for value in file.attribute_values.get((kind, node.attr), [])]
    return bool(values) and all(is_of_numpy(value, file) for value in values)


def _deciding(node: ast.Slice | ast.Compare | ast.ListComp | ast.IfExp) -> list[ast.expr]:
    """The parts of an expression of which one of numpy's makes it one."""
    if isinstance(node, ast.Slice):
        return [end for end in (node.lower, node.upper, node.step) if end is not None]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.elt] if isinstance(node, ast.ListComp) else [node.body, node.orelse]


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


def _is_arithmetic_of_numpy(node: ast.BinOp, file: FileEdit) -> bool:
    """Whether arrays and numbers alone are computed with: beside a tensor they are tensors."""
    parts = [part for part in (node.left, node.right) if not isinstance(part, ast.Constant)]
    return bool(parts) and all(is_of_numpy(part, file) for part in parts)


def _is_call_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a call is of numpy or scipy, of an array, or draws positions from a generator.

    An array is made by `x.numpy()` as well.
    """
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_GENERATORS:
        if file.use(node.func) is None and _names_of_numpy(file):
            return True
    if isinstance(node.func, ast.Name):
        return node.func.id in _names_of_numpy(file) or is_of_numpy(node.func, file)
    root: ast.expr = node
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(root, ast.Call) and getattr(root.func, "attr", "") == "numpy":
            return True
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return False
    return root.id in _names_of_numpy(file) or is_of_numpy(root, file)


def _has_arrays(file: FileEdit) -> bool:
    """Whether anything in a file makes an array or keeps a range; nothing does in most files."""
    if file.has_arrays is None:
        file.has_arrays = bool(_names_of_numpy(file)) or any(
            getattr(node.func, "attr", "") == "numpy"
            or (_is_range(node) and not _is_gone_through(node, file))
            for node in file.tree.of(ast.Call)
        )
    return file.has_arrays


def _is_gone_through(node: ast.Call, file: FileEdit) -> bool:
    around = file.tree.parents.get(node)
    return isinstance(around, (ast.For, ast.comprehension)) and around.iter is node


def _names_of_numpy(file: FileEdit) -> frozenset[str]:
    """What is imported from numpy and scipy."""
    if file.names_of_numpy is None:
        file.names_of_numpy = imported_from(file.tree, _OF_NUMBERS)
    return file.names_of_numpy


def _made_by_numpy(file: FileEdit) -> Mapping[str, Set[ast.AST | None]]:
    """Names that hold what numpy or scipy returned, or a range, with their functions.

    And names of a part of such an array, `batch = order[start : start + 32]`, and of functions of
    the file that return one; `self.order` with its class.
    """
    if file.made_by_numpy is None:
        found = file.made_by_numpy = defaultdict[str, set[ast.AST | None]](set)
        nodes = file.tree.of(ast.Assign, ast.For)
        bound = [pair for node in nodes for pair in _bound_by(node)]
        bound += [pair for node in file.tree.of(ast.Return) for pair in _returned(node, file)]
        known = -1
        while known < sum(map(len, found.values())):
            known = sum(map(len, found.values()))
            for target, value in bound:
                if is_of_numpy(value, file):
                    for name, owner in _bound_names(target, file):
                        found[name].add(owner)
    return file.made_by_numpy


def _bound_names(target: ast.AST, file: FileEdit) -> list[tuple[str, ast.AST | None]]:
    """The names that a target binds with their functions; `self.name` with its class."""
    if _is_own(target):
        return [(ast.unparse(target), file.tree.owner(target))]
    names = [target.name] if isinstance(target, _FUNCTIONS) else names_of(target)
    return [(name, file.tree.function(target)) for name in names if name != "self"]


def _returned(node: ast.Return, file: FileEdit) -> list[tuple[ast.AST, ast.expr]]:
    """A function with what it returns, alone or in a tuple: `x1, x2 = random_box(x.size())`."""
    function = file.tree.function(node)
    if function is None or node.value is None:
        return []
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return [(function, part) for part in parts]


def _bound_by(node: ast.AST) -> Sequence[tuple[ast.AST, ast.expr]]:
    """What an assignment binds, and a loop of its names to elements of what it goes through."""
    if isinstance(node, ast.Assign):
        return [pair for target in node.targets for pair in pairs_of(target, node.value)]
    assert isinstance(node, ast.For)
    return _gone_through(node.target, node.iter)


def _gone_through(target: ast.expr, source: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    by = getattr(source.func, "id", "") if isinstance(source, ast.Call) else ""
    if by == "range":
        return []
    given = source.args if isinstance(source, ast.Call) else []
    targets = target.elts if isinstance(target, ast.Tuple) else []
    if by == "enumerate" and len(targets) == 2 and given:
        return _gone_through(targets[1], given[0])
    if by == "zip":
        pairs = zip(targets, given, strict=False)
        return [found for pair in pairs for found in _gone_through(*pair)]
    return [(target, source)]
