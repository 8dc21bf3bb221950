"""Contexts in which a forward part computes as it does without them, but for its dtypes."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.tree import imported_from

_AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")


def is_autocast(context: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is `autocast(…)`, `nullcontext()` or a name for nothing but these."""
    if isinstance(context, ast.IfExp):
        return is_autocast(context.body, file) and is_autocast(context.orelse, file)
    if isinstance(context, ast.Call):
        use = file.use(context.func)
        if use is not None:
            return use.api.startswith(_AUTOCAST)
        name = ast.unparse(context.func)
        known = imported_from(file.tree, ("contextlib",))
        return name.rpartition(".")[2] == "nullcontext" and name.partition(".")[0] in known
    if not isinstance(context, ast.Name):
        return False
    bound = [
        file.tree.parents[node]
        for node in file.tree.binding
        if isinstance(node, ast.Name) and node.id == context.id
    ]
    return bool(bound) and all(
        isinstance(made, ast.Assign)
        and not isinstance(made.value, ast.Name)
        and is_autocast(made.value, file)
        for made in bound
    )
