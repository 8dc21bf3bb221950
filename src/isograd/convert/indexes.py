"""What an index says of the axes of a tensor: `x[:, ::2]`, `x[..., 0]`."""

from __future__ import annotations

import ast


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
