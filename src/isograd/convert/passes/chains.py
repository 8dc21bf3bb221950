"""Chains of what changes a tensor in place, `x.mul_(2).add_(y)`, and who reads it behind."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import POSTFIX
from isograd.convert.tree import first_argument

#: What the knowledge says of methods and functions that change their tensor.
IN_PLACE = "in_place"
#: Methods that return the tensor itself and are written elsewhere.
_RETURN_SELF = frozenset(("requires_grad_", "copy_"))
#: Methods that give what something holds.
_LOOKUPS = frozenset("get get_parameter get_buffer".split())


def target_of(receiver: ast.expr, file: FileEdit) -> ast.expr | None:
    """The name, attribute or element at the root of a chain of calls that change it."""
    node = receiver
    while isinstance(node, ast.Call) and not _is_lookup(node):
        if is_gradient(node):
            assert isinstance(node.func, ast.Attribute)
            return node.func.value
        changed = changed_by(node, file)
        if changed is None:
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in _RETURN_SELF:
                return _out_of(node)
            changed = node.func.value
        node = changed
    if isinstance(node, ast.Call) and not _is_lookup(node):
        return None
    return node if isinstance(node, POSTFIX) else None


def _is_lookup(node: ast.Call) -> bool:
    """Whether a call gives what something holds, each time the same: `getattr(net, name)`."""
    if isinstance(node.func, ast.Name):
        return node.func.id == "getattr"
    return isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS


def changed_by(call: ast.Call, file: FileEdit) -> ast.expr | None:
    """What a call changes in place and returns: x of `x.add_(1)` and of `torch.exp_(x)`."""
    use = file.use(call.func)
    entry = file.entry(use.api) if use is not None else None
    if use is None or entry is None or entry.hazard != IN_PLACE:
        return None
    if use.is_member:
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    given = first_argument(call, "input")
    return None if isinstance(given, ast.Starred) else given


def is_gradient(node: ast.Call) -> bool:
    """`p.grad.detach()`, which is the gradient itself to what is written into it."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "detach":
        return False
    return isinstance(function.value, ast.Attribute) and function.value.attr == "grad"


def _out_of(node: ast.Call) -> ast.expr | None:
    """The name that `torch.f(x, out=y)` returns, and what is done to the result is done to it."""
    given = next((part.value for part in node.keywords if part.arg == "out"), None)
    return given if isinstance(given, ast.Name) else None


def is_in_chain(node: ast.Call, file: FileEdit) -> bool:
    """Whether the result is changed in place again: `x.mul_(2).add_(y)`, `exp_(x.mul_(2))`."""
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.Attribute):
        parent = file.tree.parents.get(parent)
    return isinstance(parent, ast.Call) and changed_by(parent, file) is node


def is_read_in_chain(target: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether what a chain changes is read by one of its later calls: `x.mul_(2).add_(x)`."""
    shown = {ast.dump(target)}
    if isinstance(target, ast.Attribute) and target.attr == "data":
        shown.add(ast.dump(target.value))
    inner: ast.AST = node
    link: ast.AST = file.tree.parents[node]
    while isinstance(link, (ast.Attribute, ast.Call)):
        if isinstance(link, ast.Call):
            given = [*link.args, *(part.value for part in link.keywords)]
            others = [one for one in given if one is not inner]
            if any(ast.dump(part) in shown for one in others for part in ast.walk(one)):
                return True
        inner, link = link, file.tree.parents[link]
    return False


def is_read_after(target: ast.Name, node: ast.Call, file: FileEdit) -> bool:
    """Whether the name is read behind the call, before the function ends or it is bound anew.

    What a module leaves in its names is read by others.
    """
    scope = file.tree.scope(node)
    statement = file.tree.statement(node)
    is_bound_anew = (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and getattr(statement.targets[0], "id", "") == target.id
    )
    end = file.text.span(node)[1]
    if isinstance(scope, ast.Module) and not is_bound_anew:
        return True
    is_last = is_bound_anew or _ends_the_function(statement, file)
    others = beside(node, file)
    for part in names_in(statement if is_last else scope, target.id):
        if isinstance(part.ctx, ast.Load) and file.text.span(part)[0] >= end:
            if part not in others:
                return True
    return not is_last and _is_read_next_time(target, node, file)


def _ends_the_function(statement: ast.stmt, file: FileEdit) -> bool:
    """Whether nothing of the function runs behind a statement: no `finally` around its return."""
    return isinstance(statement, ast.Return) and not any(
        isinstance(part, ast.Try) for part in file.tree.above(statement)
    )


def beside(node: ast.AST, file: FileEdit) -> set[ast.AST]:
    """What stands in the other branch of each `a if c else b` around a node."""
    found: set[ast.AST] = set()
    inner = node
    for part in file.tree.above(node):
        if isinstance(part, ast.IfExp) and inner is not part.test:
            found.update(ast.walk(part.orelse if inner is part.body else part.body))
        inner = part
    return found


def names_in(node: ast.AST, name: str) -> list[ast.Name]:
    """Where a tree reads or binds a name."""
    return [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]


def _is_read_next_time(target: ast.Name, node: ast.AST, file: FileEdit) -> bool:
    """Whether a loop around the call reads the name again, from its beginning."""
    loops = [part for part in file.tree.above(node) if isinstance(part, (ast.For, ast.While))]
    scope = file.tree.scope(node)
    inside = [loop for loop in loops if file.tree.scope(loop) is scope]
    if not inside:
        return False
    names = names_in(inside[-1], target.id)
    is_bound = any(isinstance(part.ctx, ast.Store) for part in names)
    others = [part for part in names if part is not target and isinstance(part.ctx, ast.Load)]
    return bool(others) or not is_bound
