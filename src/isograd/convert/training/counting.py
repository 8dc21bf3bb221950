"""Numbers that change in each round of a loop."""

from __future__ import annotations

import ast

from isograd.convert.training.model import Repeated
from isograd.convert.training.paths import bound_by


def counters_of(loop: Repeated) -> set[str]:
    """The names of a loop's numbers: of `range`, of `enumerate`, or what it counts itself."""
    found = {
        node.target.id
        for node in ast.walk(loop)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        called, target = getattr(loop.iter.func, "id", ""), loop.target
        if called == "range" and isinstance(target, ast.Name):
            found.add(target.id)
        elif called == "enumerate" and isinstance(target, ast.Tuple):
            found |= bound_by(target.elts[0])
    return found
