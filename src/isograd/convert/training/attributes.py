"""Attributes that a forward part writes to, read as names: `logits, self.loss = model(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated
from isograd.convert.training.paths import bound_by, calls_in, method_of, path_of


@contextmanager
def stored_as_names(
    loop: Repeated, scope: ast.AST, backward: ast.stmt, file: FileEdit
) -> Iterator[frozenset[str]]:
    """Replace the attributes to which a loop writes before `backward()` by names with a dot.

    Yields the paths.  What is asked of names is asked of them then, too; the nodes that a plan
    keeps stand where the attributes stand in the text.  scope: what has the loop's names.
    """
    changing = bound_by(loop)
    paths = frozenset(
        path
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        for path in [path_of(node)]
        if node.lineno < backward.lineno
        and isinstance(node.value, ast.Name)
        and node.value.id not in changing
    )
    replaced: list[tuple[ast.Attribute, ast.Name]] = []
    try:
        for node in [n for n in ast.walk(scope) if isinstance(n, ast.Attribute)] if paths else []:
            if path_of(node) in paths:
                name = ast.copy_location(ast.Name(path_of(node), node.ctx), node)
                replaced.append((node, name))
                _put(name, node, file)
        yield paths
    finally:
        for node, name in replaced:
            _put(node, name, file)


def mentions(kind: ast.ClassDef, method: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a method, or one of its class that it calls, has attributes of these names."""
    methods = {part.name: part for part in kind.body if isinstance(part, ast.FunctionDef)}
    waiting, seen = [method], {method}
    while waiting:
        for node in ast.walk(waiting.pop()):
            if not isinstance(node, ast.Attribute):
                continue
            if node.attr in names:
                return True
            other = methods.get(node.attr)
            if other is not None and other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _put(new: ast.expr, old: ast.expr, file: FileEdit) -> None:
    """Put a node in the place of another one."""
    parent = file.tree.parents[old]
    file.tree.parents[new] = parent
    for name, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, name, new)
        elif isinstance(value, list) and old in value:
            value[value.index(old)] = new


def calls_of_itself(kind: ast.ClassDef, method: ast.FunctionDef, file: FileEdit) -> list[ast.expr]:
    """What is called in `self(x)`, in a method and in the methods of its object that it calls.

    These may stand in the classes of the file from which the object's class is derived.
    """
    kinds = {one.name: one for one in file.tree.of(ast.ClassDef)}
    around = [kind]
    for one in around:
        names = (getattr(base, "id", "") for base in one.bases)
        around += [kinds[name] for name in names if name in kinds and kinds[name] not in around]
    methods = [f for one in around for f in one.body if isinstance(f, ast.FunctionDef)]
    found: list[ast.expr] = []
    waiting = [method]
    for function in waiting:
        own = {part.arg for part in function.args.args[:1]}
        for call in calls_in([function]):
            if isinstance(call.func, ast.Name) and call.func.id in own:
                found.append(call.func)
            path, name = method_of(call)
            called = [f for f in methods if f.name == name and path in own]
            waiting += [f for f in called if f not in waiting]
    return found
