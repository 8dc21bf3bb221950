"""Two values under one name: `total += loss.detach()` between `loss = f(x)` and `loss = loss / 4`.

A compiled step returns the earlier value under its name and the later one under a name of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Version
from isograd.convert.training.paths import (
    block_of,
    bound_by,
    read_before_bound,
    read_by,
    unshared_changes,
)


@contextmanager
def later_versions(
    forward: list[ast.stmt], others: list[ast.stmt], loss: ast.expr, scope: ast.AST, file: FileEdit
) -> Iterator[tuple[list[ast.stmt], list[Version]]]:
    """The forward part's statements, in which each later value has a name of its own meanwhile.

    others: the loop's statements between those of the forward part, which stay outside of the step.
    scope: what has the loop's names.  `x /= y` is `x = x / y` meanwhile.
    """
    found = [_version_of(rebound, forward, others, loss, scope, file)
             for rebound in _rebound(forward, others)]  # fmt: skip
    stands_for = {one.statement: _as_assignment(one) for one in found}
    for old, new in stands_for.items():
        _put(new, old, file)
    for one in found:
        for node in one.nodes:
            node.id = one.own
    try:
        yield [stands_for.get(s, s) for s in forward], found
    finally:
        for one in found:
            for node in one.nodes:
                node.id = one.name
        for old, new in stands_for.items():
            _put(old, new, file)


def _rebound(forward: list[ast.stmt], others: list[ast.stmt]) -> list[ast.Assign | ast.AugAssign]:
    """The statements that bind a name anew behind one that reads its earlier value."""
    found: dict[str, ast.Assign | ast.AugAssign] = {}
    earlier: set[str] = set()
    plain = unshared_changes(forward)
    for s in forward:
        name = _target(s)
        read = [other for other in others if other.lineno < s.lineno and name in read_by(other)]
        is_known = name in earlier and bool(read) and name not in found
        if isinstance(s, ast.AugAssign):
            # What was read and kept would change with it.
            is_known &= s in plain and all(_reads_numbers(other, name) for other in read)
        if is_known and isinstance(s, (ast.Assign, ast.AugAssign)):
            found[name] = s
        earlier |= bound_by(s)
    return [*found.values()]


def _target(statement: ast.stmt) -> str:
    """The one name that a statement binds, and nothing else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) and "." not in target.id else ""


def _reads_numbers(statement: ast.stmt, name: str) -> bool:
    """Whether a tensor's name is read for its numbers alone: by `item()`, or to be printed."""
    nodes = list(ast.walk(statement))
    asked = {
        node.value
        for node in nodes
        if isinstance(node, ast.FormattedValue)
        or (isinstance(node, ast.Attribute) and node.attr in ("item", "tolist"))
    }
    return all(n in asked for n in nodes if isinstance(n, ast.Name) and n.id == name)


def _version_of(
    rebound: ast.Assign | ast.AugAssign, forward: list[ast.stmt], others: list[ast.stmt],
    loss: ast.expr, scope: ast.AST, file: FileEdit,
) -> Version:  # fmt: skip
    name = _target(rebound)
    later = [s for s in forward if s.lineno > rebound.lineno]
    target = rebound.targets[0] if isinstance(rebound, ast.Assign) else rebound.target
    nodes = [target, *(n for part in (*later, loss) for n in ast.walk(part))]
    own = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    inside = {n for part in (*forward, loss) for n in ast.walk(part)}
    early = {n for s in others if s.lineno < rebound.lineno for n in ast.walk(s)}
    is_kept = any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(scope)
        if n not in inside and n not in early
    ) or name in read_before_bound(forward, set())
    used, number = {*file.tree.used, *file.tree.stored}, 2
    while f"{name}_{number}" in used:
        number += 1
    return Version(rebound, name, f"{name}_{number}", tuple(own), is_kept)


def _as_assignment(version: Version) -> ast.stmt:
    """`x /= y` as `x = x / y`, an assignment as it is."""
    statement = version.statement
    if not isinstance(statement, ast.AugAssign):
        return statement
    assert isinstance(statement.target, ast.Name)
    before = ast.copy_location(ast.Name(version.name, ast.Load()), statement.target)
    value = ast.BinOp(before, statement.op, statement.value)
    return ast.copy_location(
        ast.Assign([statement.target], ast.copy_location(value, statement.value)), statement
    )


def _put(new: ast.stmt, old: ast.stmt, file: FileEdit) -> None:
    """Put a statement in the place of another one."""
    if new is old:
        return
    block = block_of(old, file)
    block[block.index(old)] = new
    parents = file.tree.parents
    parents[new] = parents[old]
    for top in ast.walk(new):
        for part in ast.iter_child_nodes(top):
            parents[part] = top
