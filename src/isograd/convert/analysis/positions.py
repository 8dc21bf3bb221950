"""Which indices may be a tensor of positions, by what scan knows of their values."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from isograd.scan.values import MASKS, Tensor, Value


def may_be_positions(index: ast.expr, values: Sequence[Value]) -> bool:
    """Whether an index of a tensor may be one tensor of positions, and no mask or number."""
    if len(values) != 1 or isinstance(index, (ast.Slice, ast.Tuple, ast.List, ast.Constant)):
        return False
    value = values[0]
    return value is None or (isinstance(value, Tensor) and value not in MASKS)
