"""What a forward part calls in some rounds alone.

torch leaves the parameters of what is not called without gradients, and its optimizer does not
step them.  A compiled step has gradients of zeros there: moments and decay would move them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from isograd.convert.file import FileEdit
from isograd.convert.training.index import last_name
from isograd.convert.training.model import EagerError, Names, Repeated
from isograd.convert.training.paths import bound_by, path_of, read_by
from isograd.convert.training.turns import WITHOUT_PARAMETERS
from isograd.convert.tree import pairs_of


def look_at_branches(
    file: FileEdit, loop: Repeated, computed: Iterable[ast.stmt], names: Names
) -> None:
    """Raise EagerError for what is called under a condition that changes, and nowhere else."""
    computed = list(computed)
    changing = _changing(file, loop)
    sometimes = {
        node
        for statement in computed
        for branch in ast.walk(statement)
        if isinstance(branch, (ast.If, ast.IfExp)) and read_by(branch.test) & changing
        for part in _parts(branch)
        for node in ast.walk(part)
    }
    used = [n for s in computed for n in ast.walk(s) if path_of(n) in names.objects]
    always = {path_of(node) for node in used if node not in sometimes}
    for node in used:
        if path_of(node) in always or not isinstance(node, ast.expr):
            continue
        if not _holds_no_parameters(node, file):
            reason = f"{path_of(node)} is called in some rounds alone, and learns in these"
            raise EagerError(node, reason)


def _holds_no_parameters(node: ast.expr, file: FileEdit) -> bool:
    """Whether all that a file binds to a name or an attribute is a loss of torch's or its like."""
    name = last_name(node)
    if any(part.arg == name for part in file.tree.of(ast.arg)):
        return False
    bound = [n for n in file.tree.of(ast.Name, ast.Attribute) if isinstance(n.ctx, ast.Store)]
    values = [
        value
        for assigned in file.tree.of(ast.Assign)
        for target in assigned.targets
        for one, value in pairs_of(target, assigned.value)
        if name == last_name(one)
    ]
    times = sum(name == last_name(n) for n in bound)
    apis = {file.api_of_call(value) for value in values}
    return 0 < times == len(values) and apis <= WITHOUT_PARAMETERS


def _changing(file: FileEdit, loop: Repeated) -> set[str]:
    """The names that the loops around bind, and a function's parameters."""
    found = bound_by(loop)
    for above in file.tree.above(loop):
        if isinstance(above, (ast.For, ast.While)):
            found |= bound_by(above)
        elif isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    if isinstance(loop, ast.FunctionDef):
        found |= {part.arg for part in ast.walk(loop.args) if isinstance(part, ast.arg)}
    return found


def _parts(branch: ast.If | ast.IfExp) -> list[ast.AST]:
    if isinstance(branch, ast.IfExp):
        return [branch.body, branch.orelse]
    return [*branch.body, *branch.orelse]
