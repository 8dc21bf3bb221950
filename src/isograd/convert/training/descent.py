"""Gradient descent that a loop writes by hand, without an optimizer.

for p in model.parameters():
    p.data.add_(p.grad, alpha=-lr)
"""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Descent, Names
from isograd.convert.training.paths import is_number, method_of, name_for, read_by

_NO_GRAD = ("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")


def descent_of(statement: ast.stmt, file: FileEdit) -> Descent | None:
    """What a statement of a loop descends, if that is all that it does."""
    if isinstance(statement, ast.With):
        calls = [item.context_expr for item in statement.items]
        if not all(file.api_of_call(call) in _NO_GRAD for call in calls):
            return None
        found = [_descent(part) for part in statement.body]
        one = found[0] if len(found) == 1 else None
        return None if one is None else Descent(statement, one.network, one.rate, one.zeroes)
    found_here = _descent(statement)
    is_written = found_here is not None and not found_here.needs_no_grad
    return found_here if is_written else None


def name_descent(descent: Descent, names: Names) -> None:
    """Names in the step for the network and, unless it is a number in the text, the rate."""
    names.objects.setdefault(descent.network, name_for(descent.network))
    if is_number(descent.rate):
        return
    name = re.sub(r"\W+", "_", descent.rate).strip("_") if descent.rate.isidentifier() else "rate"
    while name in {*names.inputs.values(), *names.objects.values()}:
        name += "_"
    names.inputs.setdefault(descent.rate, name)
    names.numbers.add(descent.rate)


def _descent(loop: ast.stmt) -> Descent | None:
    """`for p in network.parameters():` around one change of p, and perhaps one of its gradient."""
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not loop.orelse):
        return None
    network, method = method_of(loop.iter)
    if method != "parameters" or not network or loop.iter.args or loop.iter.keywords:  # type: ignore[attr-defined]
        return None
    name, body = loop.target.id, loop.body
    if len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        if ast.unparse(body[0].test) != f"{name}.grad is not None":
            return None
        body = body[0].body
    zeroes = len(body) == 2 and _is_zeroed(body[1], name)
    if not body or len(body) > 1 + zeroes:
        return None
    rate = _rate(body[0], name)
    if rate is None or name in read_by(rate):
        return None
    is_data = ast.unparse(body[0]).startswith(f"{name}.data")
    return Descent(loop, network, ast.unparse(rate), zeroes, needs_no_grad=not is_data)


def _is_zeroed(statement: ast.stmt, name: str) -> bool:
    return ast.unparse(statement) in (
        f"{name}.grad.zero_()",
        f"{name}.grad.data.zero_()",
        f"{name}.grad = None",
    )


def _rate(statement: ast.stmt, name: str) -> ast.expr | None:
    """What the gradient is multiplied with before it is taken off."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Sub):
        is_own = ast.unparse(statement.target) in (name, f"{name}.data")
        return _factor(statement.value, name) if is_own else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    path, method = method_of(call) if call is not None else ("", "")
    if not isinstance(call, ast.Call) or path not in (name, f"{name}.data"):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if method == "sub_" and len(call.args) == 1:
        if not given:
            return _factor(call.args[0], name)
        return (
            given.get("alpha") if set(given) == {"alpha"} and _is_grad(call.args[0], name) else None
        )
    if method != "add_":
        return None
    if len(call.args) == 1 and not given:
        return _negated(_factor(call.args[0], name))
    if len(call.args) == 1 and set(given) == {"alpha"} and _is_grad(call.args[0], name):
        return _negated(given["alpha"])
    is_old = len(call.args) == 2 and not given and _is_grad(call.args[1], name)
    return _negated(call.args[0]) if is_old else None


def _is_grad(node: ast.expr, name: str) -> bool:
    return ast.unparse(node) in (f"{name}.grad", f"{name}.grad.data")


def _factor(node: ast.expr, name: str) -> ast.expr | None:
    """The other factor of a product with the gradient."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if _is_grad(one, name):
            return other
    return None


def _negated(node: ast.expr | None) -> ast.expr | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    return None
