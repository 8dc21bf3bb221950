"""What a statement writes into and does not bind: `y.mul_(2)`, `bank[i] = y`, `kept.append(y)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.paths import bound_by, path_of, read_by, root_of
from isograd.scan.names_in_place import changes_in_place

#: Methods of Python's containers that change them.
OF_CONTAINERS = frozenset(
    "append extend insert update setdefault pop popitem clear remove add discard sort "
    "reverse".split()
)


def changed_by(statement: ast.AST, file: FileEdit) -> set[str]:
    """The paths of what a statement writes into: of a name, an attribute or an element."""
    found: set[str] = set()
    for target in _targets(statement, file, frozenset()):
        found |= _paths(target)
    return found


def paths_read(*nodes: ast.AST) -> set[str]:
    """The paths of all that statements or expressions read."""
    return {path_of(part) for node in nodes for part in ast.walk(node)} - {""}


def changes_what_is_read(statement: ast.stmt, other: ast.AST, file: FileEdit) -> bool:
    """Whether a statement binds or changes what another statement or an expression reads."""
    if bound_by(statement) & read_by(other):
        return True
    return bool(changed_by(statement, file) & paths_read(other))


def _paths(target: ast.expr) -> set[str]:
    """The path of what is written into, and those of what holds it: `y` of `y.data[0]`."""
    found = set()
    part: ast.AST = target
    while isinstance(part, (ast.Attribute, ast.Subscript, ast.Call)):
        found.add(path_of(part))
        part = part.func if isinstance(part, ast.Call) else part.value
    root = root_of(target)
    if root is not None and root.id != "self":
        found.add(root.id)
    return found - {""}


def _targets(statement: ast.AST, file: FileEdit, seen: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The expressions whose values a statement changes."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node.value
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node
        elif isinstance(node, ast.Call):
            yield from _of_call(node, file, seen)


def _of_call(call: ast.Call, file: FileEdit, seen: frozenset[ast.AST]) -> Iterator[ast.expr]:
    use = file.use(call.func)
    if use is not None and not use.is_member:
        given = {part.arg: part.value for part in call.keywords}
        is_in_place = use.api.endswith("_") or "inplace" in given
        yield from call.args[:1] if is_in_place else ()
        out = given.get("out")
        yield from getattr(out, "elts", [out] if out is not None else [])
    elif isinstance(call.func, ast.Attribute):
        name = call.func.attr
        if name in OF_CONTAINERS or changes_in_place(name):
            yield call.func.value
    elif isinstance(call.func, ast.Name):
        yield from _of_function(call, call.func.id, file, seen)


def _of_function(
    call: ast.Call, name: str, file: FileEdit, seen: frozenset[ast.AST]
) -> Iterator[ast.expr]:
    """The arguments that a function of the file writes into."""
    for function in file.tree.module.body:
        if not isinstance(function, ast.FunctionDef) or function.name != name or function in seen:
            continue
        changed = {
            root.id
            for target in _targets(function, file, seen | {function})
            if (root := root_of(target)) is not None
        }
        given = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
        yield from (value for value, own in zip(call.args, given, strict=False) if own in changed)
        yield from (part.value for part in call.keywords if part.arg in changed)
