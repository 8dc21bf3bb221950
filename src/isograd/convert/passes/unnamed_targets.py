"""Changes in place of what no name, attribute or element holds, or of one of several tensors."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.chains import changed_by
from isograd.convert.passes.reach_of_writes import LOST_ADVICE, tell_lost, tell_view_of_held

CHOSEN = "which tensor is changed in place is not known here; the port changes none"


def write_alone(node: ast.Call, receiver: ast.expr, code: str, file: FileEdit) -> None:
    """Write what no name holds: of a chain `x.mul_(2).add_(y)`, whose end is bound to the name."""
    tell_lost(receiver, node, file)
    is_chosen = isinstance(receiver, (ast.IfExp, ast.BoolOp, ast.NamedExpr))
    if is_chosen or (file.tree.is_statement(node) and _may_be_held(receiver, file)):
        file.finding(node, "in-place-view", CHOSEN, LOST_ADVICE)
    layout.write(file, node, code)


def tell_if_of_changed(target: ast.expr, node: ast.Call, file: FileEdit) -> None:
    """Tell `x.mul_(2)[0].add_(1)`: one statement cannot write to both; and views of properties."""
    if isinstance(target, ast.Attribute):
        tell_view_of_held(target, node, file)
    part: ast.expr = target
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        part = part.value
    if isinstance(part, ast.Call) and changed_by(part, file) is not None:
        file.finding(node, "in-place-view", CHOSEN, LOST_ADVICE)


def _may_be_held(receiver: ast.expr, file: FileEdit) -> bool:
    """Whether something else may hold what a call gives: a function of torch makes a new tensor."""
    node = receiver
    while isinstance(node, ast.Call):
        changed = changed_by(node, file)
        if changed is None:
            use = file.use(node.func)
            if use is None or not use.is_member or not isinstance(node.func, ast.Attribute):
                break
            changed = node.func.value
        node = changed
    return isinstance(node, ast.Call) and file.use(node.func) is None
