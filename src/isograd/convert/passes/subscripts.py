"""Elements taken by what MindSpore's own index refuses, or crashes at in its gradient."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Set

from isograd.convert.file import FileEdit
from isograd.convert.passes.inplace import elements, function_of, key_of, strided
from isograd.convert.tree import (
    has_inner_steps,
    imported_from,
    is_ellipsis,
    names_of,
    pairs_of,
    parts_of,
)

_NUMBERS = ("numpy", "scipy")
_SEARCHES = frozenset(("torch.nonzero", "torch.argwhere"))
#: Methods of numpy's random generators that give positions.
_OF_GENERATORS = frozenset("choice permutation integers randint".split())


class NumpyIndices:
    """`x[order]` where order was made by numpy or scipy, or is a range; or where one writes.

    And `x[..., mask]`, which MindSpore refuses of a mask of several axes.
    """

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements by a function, which sees whether x is a tensor."""
        assert isinstance(node, ast.Subscript)
        if _is_of_numpy(node.value, file):
            return False
        if not isinstance(node.ctx, ast.Load):
            return isinstance(node.ctx, ast.Store) and _stored(node, file)
        parts = parts_of(node.slice)
        is_of_numpy = any(_is_of_numpy(part, file) for part in parts)
        has_mask = any(map(is_ellipsis, parts)) and any(_is_mask(part, file) for part in parts)
        if not is_of_numpy and not has_mask:
            return False
        owner, key = file.source(node.value), key_of(node.slice, file)
        file.replace(node, f"{file.name('composites.at')}({owner}, {key})")
        return True


def _is_mask(node: ast.expr, file: FileEdit) -> bool:
    """Whether a part of an index is a mask by how it, or what its name holds, is written."""
    if not isinstance(node, ast.Name):
        return _is_condition(node, file)
    function = function_of(node, file)
    values = function.values_of(node.id) if function is not None else []
    return any(_is_condition(value, file) for value in values)


def _is_condition(node: ast.expr, file: FileEdit) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Call):
        kinds = [part.value for part in node.keywords if part.arg == "dtype"]
        is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "bool"
        return is_cast or any(getattr(file.use(kind), "api", "") == "torch.bool" for kind in kinds)
    return isinstance(node, ast.Compare)


def _stored(node: ast.Subscript, file: FileEdit) -> bool:
    """`x[order] = 0` at positions of numpy's, and at those that were looked for: perhaps none."""
    if not isinstance(file.tree.parents.get(node), ast.Assign):
        return False
    are_numpys = any(_is_of_numpy(part, file) for part in parts_of(node.slice))
    if are_numpys or _may_be_none(node.slice, file):
        file.replace(node, elements(node, file))
        return True
    return False


def _may_be_none(index: ast.expr, file: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an index is of the positions where something holds: MindSpore refuses none."""
    root: ast.expr = index
    while not _is_search(root, file):
        if isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
            root = root.func.value
        elif isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        else:
            break
    if not isinstance(root, ast.Name):
        return _is_search(root, file)
    function = function_of(root, file)
    if function is None or root.id in seen:
        return False
    known = seen | {root.id}
    return any(_may_be_none(value, file, known) for value in function.values_of(root.id))


def _is_search(node: ast.expr, file: FileEdit) -> bool:
    if not isinstance(node, ast.Call):
        return False
    api = file.api_of_call(node)
    if api == "torch.where":
        return len(node.args) == 1 and not node.keywords
    return api in _SEARCHES or getattr(node.func, "attr", "") in ("nonzero", "argwhere")


def _is_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a part of an index is an array, a number or a range by what it was made by."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return any(end is not None and _is_of_numpy(end, file) for end in ends)
    if _is_range(node) or _is_call_of_numpy(node, file):
        return True
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    functions = _made_by_numpy(file).get(node.id, frozenset())
    if not functions:
        return False
    return (file.tree.function(node) if file.tree.is_own(node.id, node) else None) in functions


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


def _is_call_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a call is of numpy or scipy, or draws positions from a generator."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_GENERATORS:
        if file.use(node.func) is None and _names_of_numpy(file):
            return True
    root: ast.expr = node
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        root = root.func if isinstance(root, ast.Call) else root.value
    return isinstance(root, ast.Name) and root.id in _names_of_numpy(file)


def _names_of_numpy(file: FileEdit) -> frozenset[str]:
    """What is imported from numpy and scipy."""
    if file.names_of_numpy is None:
        file.names_of_numpy = imported_from(file.tree, _NUMBERS)
    return file.names_of_numpy


def _made_by_numpy(file: FileEdit) -> Mapping[str, Set[ast.AST | None]]:
    """Names that hold what numpy or scipy returned, or a range, with their functions."""
    if file.made_by_numpy is None:
        found = defaultdict[str, set[ast.AST | None]](set)
        for node in file.tree.of(ast.Assign, ast.For):
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                pairs = (pair for part in node.targets for pair in pairs_of(part, node.value))
                targets = [t for t, v in pairs if _is_range(v) or _is_call_of_numpy(v, file)]
            elif _is_call_of_numpy(node.iter, file):
                targets = [node.target]
            for name in (name for target in targets for name in names_of(target)):
                found[name].add(file.tree.function(node))
        file.made_by_numpy = dict(found)
    return file.made_by_numpy


class Subscripts:
    """`x[..., 0::2, 1::2, :]`, `x[:, ::2]`."""

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements along one axis after the other."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.ctx, ast.Load) or not has_inner_steps(node.slice):
            return False
        start, end = file.text.span(node)
        file.text.replace(start, end, strided(node, file))
        file.uses += 1
        file.converted += 1
        return True
