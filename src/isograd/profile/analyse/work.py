"""How much arithmetic an operator does, from its shapes."""

from __future__ import annotations

import math
import re
from functools import lru_cache

_MATRIX = frozenset({"aten::mm", "aten::bmm", "MatMul", "BatchMatMul", "MatMulExt", "MatMulV2"})
_MATRIX_PLUS = frozenset({"aten::addmm", "aten::baddbmm"})


@lru_cache(maxsize=8192)
def tensors(shapes: str) -> tuple[tuple[int, ...], ...]:
    """`2×3, 4` as ((2, 3), (4,)); also the `2,3;4` of Ascend's files."""
    parts = re.split(r";|, ", shapes.strip('"'))
    return tuple(tuple(map(int, re.findall(r"\d+", part))) for part in parts if part)


def dense_flops(name: str, shapes: str) -> float | None:
    """Operations of one call of a matrix product, None for other operators.

    Convolutions are left out: their shapes without strides and groups do not tell their work.
    """
    given = tensors(shapes)
    if name in _MATRIX_PLUS:
        given = given[1:]
    elif name not in _MATRIX:
        return None
    if len(given) < 2 or len(given[0]) < 2 or len(given[1]) < 2:
        return None
    left, right = given[0], given[1]
    if left[-1] != right[-2]:
        return None
    return 2.0 * math.prod(left) * right[-1]
