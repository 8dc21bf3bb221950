"""Where gradients may be clipped in a loop that becomes a compiled step."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated
from isograd.convert.training.paths import (
    block_of,
    bound_by,
    calls_in,
    method_of,
    read_by,
    statement_call,
)


def is_beside(
    statement: ast.stmt, update: ast.stmt, scaler: str, loop: Repeated, file: FileEdit
) -> bool:
    """Whether it stands in the block of the step, or there under a condition that stays the same.

    update: the optimizer's step; scaler: the path of what may unscale the gradients before.
    """
    block = block_of(update, file)
    if statement in block:
        return isinstance(statement, (ast.Expr, ast.Assign))
    above = file.tree.parents[statement]
    if not isinstance(above, ast.If) or above not in block or above.orelse:
        return False
    others = [s for s in above.body if s is not statement]
    is_fixed = not (read_by(above.test) & bound_by(loop) or [*calls_in([above.test])])
    return (
        is_fixed
        and isinstance(statement, ast.Expr)
        and all(method_of(statement_call(s) or s) == (scaler, "unscale_") for s in others)
    )
