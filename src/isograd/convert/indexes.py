"""What an index says of the axes of a tensor: `x[:, ::2]`, `x[..., 0]`."""

from __future__ import annotations

import ast
from math import inf


def parts_of(index: ast.expr) -> list[ast.expr]:
    """What an index says of each axis."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def is_ellipsis(node: ast.AST) -> bool:
    """`…` in an index."""
    return isinstance(node, ast.Constant) and node.value is ...


def has_inner_steps(index: ast.expr) -> bool:
    """Whether an index steps along an axis that may be neither the first nor the last.

    The gradient of MindSpore's own slices raises there on a CPU: "StridedSliceGrad, 6 input memory
    out of bounds" for `x[:, ::2]` of three axes (2.10, tests/convert/test_executed.py).
    """
    if not isinstance(index, ast.Tuple):
        return False
    stepped = [
        place
        for place, part in enumerate(index.elts)
        if isinstance(part, ast.Slice) and part.step is not None
    ]
    if len(stepped) != 1:
        return len(stepped) > 1
    (place,) = stepped
    is_last = any(map(is_ellipsis, index.elts[:place])) and place == len(index.elts) - 1
    return place > 0 and not is_last


def are_apart(one: ast.expr, other: ast.expr) -> bool:
    """Whether two are parts of one tensor by numbers that differ: `x[0]`, `x[1:]`."""
    if not (isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript)):
        return False
    if ast.dump(one.value) != ast.dump(other.value):
        return False
    for left, right in zip(parts_of(one.slice), parts_of(other.slice), strict=False):
        if (before := _span(left)) and (behind := _span(right)):
            if before[1] <= behind[0] or behind[1] <= before[0]:
                return True
        if not is_ellipsis(left) and not isinstance(left, (ast.Constant, ast.Slice, ast.Name)):
            return False  # it may be more or less than one axis
        if is_ellipsis(left) != is_ellipsis(right):
            return False
    return False


def _span(index: ast.expr) -> tuple[float, float] | None:
    """From where to where numbers that are written out take elements: `[1]`, `[2:]`."""
    if isinstance(index, ast.Slice):
        first = 0 if index.lower is None else _number(index.lower)
        last = inf if index.upper is None else _number(index.upper)
    elif (first := _number(index)) is not None:
        last = first + 1
    else:
        return None
    return None if first is None or last is None else (first, last)


def _number(node: ast.expr) -> int | None:
    value = getattr(node, "value", None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
