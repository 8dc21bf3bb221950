"""Which indices are masks, by how they are written, and which writes a graph refuses by one."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.indexes import parts_of
from isograd.convert.integer_expressions import may_be_integer
from isograd.convert.passes.elements import may_be_positions
from isograd.convert.passes.numpy_arrays import is_array
from isograd.convert.passes.reach_of_writes import may_be_compiled, scope_of
from isograd.convert.places import place

#: What makes a mask.
_CONDITIONS = frozenset(
    f"{home}.{name}"
    for home in ("torch", "torch.Tensor")
    for name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "isclose", "isin"),
        *("logical_and", "logical_or", "logical_not", "logical_xor", "less", "greater"),
    )
)


def is_mask(node: ast.expr, file: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a part of an index is a mask by how it, or what its name holds, is written."""
    if not isinstance(node, ast.Name):
        return _is_condition(node, file, seen)
    if node.id in seen:
        return False
    values, known = scope_of(node, file).values_of(node.id), seen | {node.id}
    return any(_is_condition(value, file, known) for value in values)


def _is_condition(node: ast.expr, file: FileEdit, seen: frozenset[str]) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Subscript):
        return is_mask(node.value, file, seen)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return is_mask(node.left, file, seen) or is_mask(node.right, file, seen)
    if isinstance(node, ast.Call):
        if node.args and _is_of_truths(node.args[0]):
            return True
        use = file.use(node.func)
        if use is not None and use.api in _CONDITIONS:
            return True
        kinds = [part.value for part in node.keywords if part.arg == "dtype"]
        is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "bool"
        return is_cast or any(getattr(file.use(kind), "api", "") == "torch.bool" for kind in kinds)
    return isinstance(node, ast.Compare)


def _is_of_truths(node: ast.expr) -> bool:
    """Whether a list, of lists perhaps, begins with True or False."""
    while isinstance(node, ast.BinOp):
        node = node.left
    while isinstance(node, ast.List) and node.elts:
        node = node.elts[0]
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def is_stored_by_mask(target: ast.Subscript, value: ast.AST, file: FileEdit) -> bool:
    """Whether a graph may have to write several values where a mask is true, which it refuses.

    Of one number it takes any mask.
    """
    index, found = target.slice, file.facts.selections.get(place(target))
    if isinstance(index, (ast.Tuple, ast.Slice, ast.Constant)) or is_array(target.value, file):
        return False
    if not may_be_compiled(target, file) or isinstance(value, (ast.Constant, ast.UnaryOp)):
        return False
    if found or is_mask(index, file):
        return True
    is_of_tensor = found is None and place(target) in file.facts.indexed
    return (
        is_of_tensor and may_be_positions(index, target, file) and not may_be_integer(index, file)
    )


def is_read_alike(index: ast.expr) -> bool:
    """Whether an index may be read twice: what it calls may draw numbers."""
    return not any(isinstance(part, ast.Call) for part in ast.walk(index))


def is_behind_slices(node: ast.Subscript, file: FileEdit) -> bool:
    """Whether a graph may have to take `x[:, mask]`, which it refuses."""
    parts = parts_of(node.slice)
    if not any(isinstance(part, ast.Slice) for part in parts) or not may_be_compiled(node, file):
        return False
    has_mask = bool(file.facts.selections.get(place(node)))
    return has_mask or any(is_mask(part, file) for part in parts)
