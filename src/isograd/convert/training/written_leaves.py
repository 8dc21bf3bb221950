"""Tensors that an optimizer is given, as Parameters: `torch.zeros(1, requires_grad=True)`.

log_alpha = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([log_alpha], lr=1e-3)

A static graph differentiates with respect to Parameters alone.  A name or an attribute that is
bound once, and to such a tensor, holds a Parameter in its place.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.text import Text
from isograd.convert.training.learning_marks import without_mark
from isograd.convert.training.names import is_of_optimizers
from isograd.convert.training.paths import path_of
from isograd.convert.tree import Tree, is_true, read_tree
from isograd.static_graph.scope import FileScope

WORD = "requires_grad"
PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_KINDS = frozenset((ast.Name, ast.Attribute, ast.Call, ast.FunctionDef))
_Path = tuple[ast.AST | None, str]


def written_leaves(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The edits of a file that make Parameters of what its optimizers are given."""
    read, file = read_tree(tree, _KINDS), FileScope(tree)
    torch = next((own for own, full in file.imports.items() if full == "torch"), "")
    optimized = _optimized(read, file)
    if not torch or not optimized:
        return []
    times = Counter(path for _, path in _bound(read))
    found = list[tuple[int, int, str]]()
    for statement, path in _bound(read):
        if path in optimized and times[path] == 1 and isinstance(statement, ast.Assign):
            found += _as_parameter(statement, f"{torch}.nn.Parameter", file, read, Text(text))
    return found


def leaves_of(file: FileEdit) -> set[str]:
    """The paths that hold nothing but Parameters which the file makes outside of networks."""
    leaves, others = set[str](), set[str]()
    if file.facts.apis.isdisjoint(PARAMETERS):
        return leaves
    for statement, (_, path) in _bound(file.tree):
        value = statement.value if isinstance(statement, ast.Assign) else None
        is_one = isinstance(value, ast.Call) and file.api_of_call(value) in PARAMETERS
        owner = file.tree.owner(statement)
        is_one = is_one and (owner is None or _is_plain(owner))
        (leaves if is_one else others).add(path)
    return leaves - others


def _bound(tree: Tree) -> Iterator[tuple[ast.AST, _Path]]:
    """What binds names and attributes of objects, with the paths; of a name with its scope."""
    for node in tree.of(ast.Name, ast.Attribute):
        if isinstance(node.ctx, ast.Load):
            continue
        statement = tree.parents[node]
        is_one = isinstance(statement, ast.Assign) and statement.targets == [node]
        yield statement if is_one else node, _path(node, tree)
    for function in tree.of(ast.FunctionDef):
        for one in ast.walk(function.args):
            if isinstance(one, ast.arg):
                yield one, (function, one.arg)


def _path(node: ast.expr, tree: Tree) -> _Path:
    return (tree.scope(node) if isinstance(node, ast.Name) else None, path_of(node))


def _optimized(tree: Tree, file: FileScope) -> set[_Path]:
    """The names, and the attributes of objects of plain classes, in lists for optimizers."""
    found = set[_Path]()
    for call in tree.of(ast.Call):
        if not is_of_optimizers(file.qualified(call.func)) or not call.args:
            continue
        for row in ast.walk(call.args[0]):
            for part in row.elts if isinstance(row, (ast.List, ast.Tuple)) else ():
                owner = tree.owner(part)
                is_own = isinstance(part, ast.Attribute) and owner is not None and _is_plain(owner)
                if isinstance(part, ast.Name) or (is_own and path_of(part).count(".") == 1):
                    found.add(_path(part, tree))
    return found


def _is_plain(node: ast.ClassDef) -> bool:
    """Whether a class has no base, which might be a network's."""
    return not node.keywords and all(getattr(base, "id", "") == "object" for base in node.bases)


def _as_parameter(
    statement: ast.Assign, parameter: str, file: FileScope, tree: Tree, text: Text
) -> Iterator[tuple[int, int, str]]:
    """A tensor that learns, without its mark and within a call that makes a Parameter of it."""
    call = statement.value
    if not isinstance(call, ast.Call):
        return
    marks = [word for word in call.keywords if word.arg == WORD]
    if marks and file.qualified(call.func).startswith("torch.") and is_true(marks[0].value):
        without = without_mark(marks[0], call, tree, text)
    elif isinstance(call.func, ast.Attribute) and call.func.attr == f"{WORD}_":
        given = [*call.args, *(word.value for word in call.keywords)]
        if not all(map(is_true, given)):
            return
        without = without_mark(call, call.func.value, tree, text)
    else:
        return
    start, end = text.span(call)
    yield start, start, f"{parameter}("
    yield from without
    yield end, end, ")"
