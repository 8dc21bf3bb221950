"""A condition whose branches take the same step, one of them with a scaler: mixed precision or not.

    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()

A scaler that is switched off does what the other branch does, so that both are one step.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Branches, EagerError, Phase
from isograd.convert.training.paths import calls_in, is_fixed, method_of, path_of


def branches_around(node: ast.AST, file: FileEdit) -> Branches | None:
    """The condition of this kind in whose branch a statement or call stands."""
    for above in file.tree.above(node):
        if isinstance(above, (ast.FunctionDef, ast.For, ast.While, ast.ClassDef)):
            return None
        if isinstance(above, ast.If) and above.orelse:
            return _branches(above, file)
    return None


def _branches(statement: ast.If, file: FileEdit) -> Branches | None:
    for scaled, plain in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
        paths = {path for path, method in map(method_of, calls_in(scaled)) if method == "scale"}
        path = next(iter(paths)) if len(paths) == 1 else ""
        if not path or not _is_fixed(statement, file):
            continue
        stripped = [_Unscaled(path).visit(copy.deepcopy(part)) for part in scaled]
        if _written([part for part in stripped if part is not None]) == _written(plain):
            used = _used(statement, path, is_first=scaled is statement.body)
            return Branches(statement, tuple(scaled), tuple(plain), used)
    return None


def _is_fixed(statement: ast.If, file: FileEdit) -> bool:
    """Whether the condition is the same in all rounds of the loop around it."""
    for loop in file.tree.above(statement):
        if isinstance(loop, (ast.For, ast.While, ast.FunctionDef)):
            return is_fixed(statement.test, loop)
    return False


def _written(statements: Iterable[ast.stmt]) -> list[str]:
    return [ast.dump(part) for part in statements]


def _used(statement: ast.If, path: str, *, is_first: bool) -> str:
    """The scaler, or None where the condition leaves it out."""
    test = statement.test
    if path_of(test) == path and is_first:
        return path
    if isinstance(test, ast.Compare) and path_of(test.left) == path:
        other = test.comparators[0]
        is_of_two = len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        if is_of_two and isinstance(other, ast.Constant) and other.value is None:
            is_used_if_any = isinstance(test.ops[0], ast.IsNot) == is_first
            return path if is_used_if_any else "None"
    written = ast.unparse(test)
    return f"{path} if {written} else None" if is_first else f"None if {written} else {path}"


class _Unscaled(ast.NodeTransformer):
    """What a branch would be without its scaler."""

    def __init__(self, scaler: str) -> None:
        self.scaler = scaler

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Leave out `unscale_` and `update`; `scaler.step(optimizer)` is `optimizer.step()`."""
        path, method = method_of(node.value)
        if path == self.scaler and method in ("unscale_", "update"):
            return None
        if path == self.scaler and method == "step" and isinstance(node.value, ast.Call):
            stepped = ast.Attribute(node.value.args[0], "step", ast.Load())
            return ast.Expr(ast.Call(stepped, [], []))
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`scaler.scale(loss)` is the loss."""
        self.generic_visit(node)
        is_scaled = method_of(node) == (self.scaler, "scale") and len(node.args) == 1
        return node.args[0] if is_scaled else node


def look_at_rest(branches: Branches | None, phase: Phase | None, taken: set[ast.stmt]) -> None:
    """Raise EagerError where a branch holds more than the step, into which it goes as a whole."""
    for statement in branches.scaled if branches else ():
        if statement not in taken:
            raise EagerError(statement, "a branch holds more than the step")
    for statement in phase.statement.body if phase else ():
        if statement not in taken:
            raise EagerError(statement, "the condition holds more than the step")
