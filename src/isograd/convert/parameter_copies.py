"""Where `p.copy_(values)` of MindSpore's is all that a write into a Parameter's data takes."""

from __future__ import annotations

import ast

from isograd.convert.analysis.layers import bound_locally
from isograd.convert.file import FileEdit

_SWITCHES = ("torch.no_grad", "torch.inference_mode")


def is_plain_copy(owner: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether `m.weight.data.copy_(w)` writes what is computed into a layer made here, unrecorded.

    `copy_` casts and broadcasts as torch does, but refuses some views (2.10, CPU); recorded, it
    would raise, or take the gradient away that what is written to `p.data` leaves.
    """
    if not isinstance(owner, ast.Attribute) or not isinstance(owner.value, ast.Name):
        return False
    if not _copies_into(owner, node) or not file.tree.is_statement(node):
        return False
    made = bound_locally(owner.value, file.tree)
    if not made or not all(isinstance(value, ast.Call) for value in made):
        return False
    is_known = file.is_parameter(owner) and _is_computed(node.args[0], file)
    return is_known and _is_unrecorded(node, file)


def _copies_into(owner: ast.Attribute, node: ast.Call) -> bool:
    """Whether a call is `owner.data.copy_(values)`."""
    method = node.func
    if not isinstance(method, ast.Attribute) or method.attr != "copy_":
        return False
    is_of_owner = getattr(method.value, "value", None) is owner
    return is_of_owner and len(node.args) == 1 and not node.keywords


def _is_computed(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression, or all that binds its name, is arithmetic: it is no view."""
    if isinstance(node, ast.Name):
        values = bound_locally(node, file.tree)
        return bool(values) and all(isinstance(value, ast.BinOp) for value in values)
    return isinstance(node, ast.BinOp)


def _is_unrecorded(node: ast.AST, file: FileEdit) -> bool:
    """Whether the innermost function, or a block in it, records no gradients.

    A decorator may go away (UnrecordedFunctions), so it counts where nothing is recorded at all.
    """
    for part in file.tree.above(node):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            switches = [item.context_expr for item in part.items]
        else:
            switches = (
                [] if file.settings.records_gradients else getattr(part, "decorator_list", [])
            )
        for switch in switches:
            named = switch.func if isinstance(switch, ast.Call) else switch
            if file.named.get(named, "") in _SWITCHES and not getattr(switch, "args", None):
                return True
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
    return False
