"""Where a class of torch's as a value is what instances are of, and not what makes them.

MindSpore's own class is written there.  Elsewhere a class as a value is what takes torch's
arguments: a function that makes MindSpore's layer is equal to no class, and no `isinstance` takes
it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from isograd.convert.analysis.layers import bound_locally
from isograd.convert.tree import Tree, is_type_of

_Loop = ast.For | ast.comprehension
_LOOPS = (ast.For, ast.comprehension)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_QUESTIONS = ("isinstance", "issubclass")


def is_kind(node: ast.AST, tree: Tree) -> bool:
    """Whether a class is compared with types, or asked for instances: itself, or by a name."""
    inner, parent = node, tree.parents.get(node)
    path: list[int] = []
    while isinstance(parent, (*_DISPLAYS, ast.IfExp)):
        if isinstance(parent, _DISPLAYS):
            path.insert(0, parent.elts.index(inner))  # type: ignore[arg-type]
        inner, parent = parent, tree.parents.get(parent)
    if isinstance(parent, ast.Compare):
        return any(_is_type(part, tree) for part in (parent.left, *parent.comparators))
    if isinstance(parent, ast.Dict):
        return inner in parent.keys and _is_looked_up(parent, tree)
    if isinstance(parent, _LOOPS) and parent.iter is inner and path:
        return _is_asked(_of_loop(parent, path, tree))
    return any(_asks(name, where, tree, path) for name, where in _names(inner, parent, tree))


def _is_type(node: ast.expr, tree: Tree) -> bool:
    """`type(x)`, `x.__class__`, or a name of its function that holds nothing else."""
    if not isinstance(node, ast.Name):
        return is_type_of(node)
    values = bound_locally(node, tree)
    return bool(values) and all(map(is_type_of, values))


def _is_looked_up(table: ast.Dict, tree: Tree) -> bool:
    """Whether types are looked up in a dictionary: where it stands, or by the name it has."""
    parent = tree.parents.get(table)
    if _takes_type(table, tree):
        return True
    return any(
        _takes_type(use, tree)
        for name, where in _names(table, parent, tree)
        for use in _uses(name, where, tree)
    )


def _takes_type(table: ast.expr, tree: Tree) -> bool:
    """`table[type(m)]`, `table.get(type(m))`, `type(m) in table`, a loop that asks by its keys."""
    parent = tree.parents.get(table)
    if isinstance(parent, ast.Subscript) and parent.value is table:
        return _is_type(parent.slice, tree)
    if isinstance(parent, ast.Compare):
        return _is_type(parent.left, tree)
    call = tree.parents.get(parent) if isinstance(parent, ast.Attribute) else None
    if not isinstance(call, ast.Call) or call.func is not parent:
        return False
    loop = tree.parents.get(call)
    if isinstance(loop, ast.For) and loop.iter is call:
        key = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        return isinstance(key, ast.Name) and _asks(key.id, loop, tree)
    return bool(call.args) and _is_type(call.args[0], tree)


def _names(value: ast.AST, parent: ast.AST | None, tree: Tree) -> Iterator[tuple[str, ast.AST]]:
    """Names that hold a value, each with the function or the module in which it is known."""
    if isinstance(parent, ast.Assign) and parent.value is value:
        for target in parent.targets:
            if isinstance(target, ast.Name):
                yield target.id, tree.scope(parent)
            elif isinstance(target, ast.Attribute):
                yield ast.unparse(target), tree.module
    elif isinstance(parent, ast.arguments):
        function = tree.parents[parent]
        given = [*parent.posonlyargs, *parent.args]
        defaults = dict(zip(map(id, reversed(parent.defaults)), reversed(given), strict=False))
        defaults |= dict(zip(map(id, parent.kw_defaults), parent.kwonlyargs, strict=True))
        if id(value) in defaults:
            yield defaults[id(value)].arg, function
    elif isinstance(parent, (ast.Call, ast.keyword)):
        yield from _parameters(value, parent, tree)


def _parameters(
    value: ast.AST, parent: ast.Call | ast.keyword, tree: Tree
) -> Iterator[tuple[str, ast.AST]]:
    """The parameter of a function of the file that a call gives a value to."""
    call = tree.parents[parent] if isinstance(parent, ast.keyword) else parent
    called = getattr(call, "func", None)
    name = called.id if isinstance(called, ast.Name) else ""
    for function in tree.module.body:
        if isinstance(function, ast.FunctionDef) and function.name == name:
            given = [*function.args.posonlyargs, *function.args.args]
            if isinstance(parent, ast.keyword):
                yield str(parent.arg), function
            elif value in parent.args and parent.args.index(value) < len(given):
                yield given[parent.args.index(value)].arg, function


def _uses(name: str, where: ast.AST, tree: Tree) -> Iterator[ast.expr]:
    """Where a name, or an attribute by its path, is read."""
    for part in tree.walked(where):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            yield part
        elif isinstance(part, ast.Attribute) and "." in name and ast.unparse(part) == name:
            if isinstance(part.ctx, ast.Load):
                yield part


def _asks(name: str, where: ast.AST, tree: Tree, path: Sequence[int] = ()) -> bool:
    """Whether a name is asked for instances or compared with types, and never called.

    path: where in what the name holds a class stands, by its positions in lists.
    """
    return _is_asked(_questions(name, where, tree, path))


def _is_asked(found: Iterable[bool]) -> bool:
    asked = set(found)
    return True in asked and False not in asked


def _questions(name: str, where: ast.AST, tree: Tree, path: Sequence[int]) -> Iterator[bool]:
    """For each use of a name: True where it is asked for instances, False where it is called."""
    for use in _uses(name, where, tree):
        part, parent = use, tree.parents.get(use)
        if isinstance(parent, ast.Call) and parent.func is use:
            yield False
        while isinstance(parent, (*_DISPLAYS, ast.BinOp)):
            part, parent = parent, tree.parents.get(parent)
        if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") in _QUESTIONS:
            if part in parent.args[1:]:
                yield True
        elif isinstance(parent, ast.Compare):
            if any(_is_type(one, tree) for one in (parent.left, *parent.comparators)):
                yield True
        elif isinstance(parent, _LOOPS) and parent.iter is part:
            yield from _of_loop(parent, path, tree)


def _of_loop(loop: _Loop, path: Sequence[int], tree: Tree) -> Iterator[bool]:
    """What becomes of the class at a path of what a loop goes through."""
    target, rest = loop.target, [*path[1:]]
    while isinstance(target, (ast.Tuple, ast.List)) and rest:
        at = rest.pop(0)
        if at >= len(target.elts) or any(isinstance(one, ast.Starred) for one in target.elts):
            return
        target = target.elts[at]
    if isinstance(target, ast.Name):
        where = loop if isinstance(loop, ast.For) else tree.parents[loop]
        yield from _questions(target.id, where, tree, rest)
