"""Detectors of values that are written after another name has taken them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.static_graph.detectors.common import (
    CHANGES,
    Found,
    Position,
    changes,
    end_position,
    position,
)
from isograd.static_graph.scope import (
    BUFFER,
    LIST,
    PARAMETER,
    TENSOR,
    TENSORS,
    below,
    blocks,
    is_self_attribute,
)
from isograd.static_graph.values import Locals

_VIEWS = frozenset(
    "reshape view transpose swapaxes permute squeeze unsqueeze flatten T expand_dims t".split()
)


def list_alias(own: Locals) -> Found:
    """A list that is changed through another name, or by a helper whose result is dropped."""
    aliases = {
        t.id
        for n in own.all(ast.Assign)
        if isinstance(n.value, ast.Name) and own.of(n.value) == LIST
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    for node in own.all(ast.Call):
        if changes(node, own, CHANGES):
            assert isinstance(node.func, ast.Attribute)
            if getattr(node.func.value, "id", "") in aliases:
                yield node
    yield from _changed_by_helpers(own, (LIST,))


def _changed_by_helpers(own: Locals, kinds: tuple[str, ...]) -> Found:
    """`self.helper(ys)` as a statement, where the helper changes what it is given."""
    for node in own.all(ast.Expr):
        call = node.value
        if not isinstance(call, ast.Call):
            continue
        helper = _helper(own, call.func)
        names = [a.arg for a in helper.args.args if a.arg != "self"] if helper else []
        for name, given in zip(names, call.args, strict=False):
            if isinstance(given, ast.Name) and own.of(given) in kinds:
                if helper is not None and _is_changed(helper, name):
                    yield call


def _helper(own: Locals, function: ast.expr) -> ast.FunctionDef | None:
    if isinstance(function, ast.Attribute) and is_self_attribute(function):
        return own.file.method(own.cls, function.attr)
    return own.file.functions.get(function.id) if isinstance(function, ast.Name) else None


def _is_changed(helper: ast.FunctionDef, name: str) -> bool:
    for node in below(helper):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            if getattr(node.value, "id", "") == name:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CHANGES and getattr(node.func.value, "id", "") == name:
                return True
    return False


def parameter_write(own: Locals) -> Found:
    """`self.r[:] = …`, `self.r.mul_(…)`, `ops.assign(self.buffer, …)`."""
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            if own.of(node.value) in (PARAMETER, BUFFER):
                yield node
    for call in own.all(ast.Call):
        if isinstance(call.func, ast.Attribute):
            subject = _chained(call.func)
            method = call.func.attr
            if method.endswith("_") and method not in ("copy_", "__init__"):
                if is_self_attribute(subject) and own.of(subject) in (PARAMETER, BUFFER):
                    yield call
            elif own.file.qualified(call.func) == "mindspore.ops.assign" and call.args:
                if own.of(call.args[0]) == BUFFER:
                    yield call


def _chained(node: ast.expr) -> ast.expr:
    """The subject of `x.mul_(a).add_(b)`."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        inner = node.func if isinstance(node, ast.Call) else node
        if not isinstance(inner, ast.Attribute) or is_self_attribute(inner):
            return inner
        node = inner.value
    return node


def _other_names(own: Locals) -> dict[str, tuple[str, Position]]:
    """Names that are views or other names of a tensor: of which, and since which line."""
    found: dict[str, tuple[str, Position]] = {}
    for node in own.all(ast.Assign):
        if len(node.targets) != 1:
            continue
        target, source = node.targets[0], _viewed(node.value)
        if isinstance(target, ast.Name) and isinstance(source, ast.Name):
            if target.id != source.id and own.of(source) in TENSORS:
                found[target.id] = source.id, position(node)
    return found


def _viewed(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _VIEWS:
            return node.func.value
    return node


def _is_read_after(own: Locals, name: str, after: Position) -> bool:
    return any(
        n.id == name and isinstance(n.ctx, ast.Load) and position(n) > after
        for n in own.all(ast.Name)
    )


def view_write(own: Locals) -> Found:
    """`v = y[0]`, then `v[:] = 0`, and y is read again; or a helper that writes into y."""
    others = _other_names(own)
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            name = getattr(node.value, "id", "")
            if name in others and others[name][1] < position(node):
                if _is_read_after(own, others[name][0], position(node)):
                    yield node
    yield from _changed_by_helpers(own, (TENSOR,))


def write_after_read(own: Locals) -> Found:
    """`z = y * y`, then `y[0] = 0`, and z is read again."""
    for node in own.all(ast.Subscript):
        if not isinstance(node.ctx, ast.Store):
            continue
        name = getattr(node.value, "id", "")
        if name and own.of(node.value) == TENSOR and _read_before(own, name, position(node)):
            yield node


def _read_before(own: Locals, name: str, before: Position) -> bool:
    for node in own.all(ast.Assign):
        if position(node) >= before:
            continue
        target = node.targets[0]
        is_product = isinstance(node.value, ast.BinOp) and isinstance(
            node.value.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult)
        )
        names = {n.id for n in below(node.value) if isinstance(n, ast.Name)}
        if is_product and name in names and isinstance(target, ast.Name) and target.id != name:
            if _is_read_after(own, target.id, before):
                return True
    return False


def augmented_alias(own: Locals) -> Found:
    """`z = y`, then `y += x`, and z is read again; or the other way round."""
    aliases: dict[str, tuple[str, Position]] = {}
    for node in own.all(ast.Assign):
        if isinstance(node.value, ast.Name):
            if own.of(node.value) in TENSORS:
                names = [t.id for t in node.targets if isinstance(t, ast.Name)]
                aliases |= dict.fromkeys(names, (node.value.id, position(node)))
    pairs = [*aliases.items(), *((source, (name, at)) for name, (source, at) in aliases.items())]
    for change in own.all(ast.AugAssign):
        if isinstance(change.target, ast.Name):
            for name, (other, at) in pairs:
                is_meant = name == change.target.id and at < position(change)
                if is_meant and not _is_rebound(own, (name, other), at, change):
                    # What the right side reads, it reads before the tensor is changed.
                    if _is_read_after(own, other, end_position(change)):
                        yield change


def _is_rebound(own: Locals, names: tuple[str, ...], after: Position, before: ast.stmt) -> bool:
    """Whether one of the names gets another value on every way between two places."""
    for block in _blocks_around(own.function, before):
        for node in block:
            if isinstance(node, ast.Assign) and after < position(node) < position(before):
                if any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
                    return True
    return False


def _blocks_around(function: ast.FunctionDef, wanted: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements that lead to one: of the function, of a loop or branch in it, …"""
    for node in below(function):
        for block in blocks(node):
            if any(part is wanted for s in block for part in below(s)):
                yield block


def in_place_result(own: Locals) -> Found:
    """`y.add_(x)` as a statement."""
    for node in own.all(ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in ("add_", "sub_", "mul_", "div_"):
                if isinstance(call.func.value, ast.Name) and own.of(call.func.value) in TENSORS:
                    yield call
