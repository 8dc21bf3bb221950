"""What a name or an attribute surely holds, as a statement shortly before binds it."""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree

#: What runs later than the statement in which it is written.
_LATER = (ast.Lambda, ast.GeneratorExp)
#: What may run code that binds anything.
_RUNS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def just_made(node: ast.expr, tree: Tree) -> ast.expr | None:
    """The value that a statement of the same block binds to a path (`self.conv`); None: unknown.

    Between the two nothing is done but that the data of its parts is written.
    """
    statement = tree.statement(node)
    for part in tree.above(node):
        if part is statement:
            break
        if isinstance(part, _LATER):
            return None
    path = ast.unparse(node)
    for before in reversed(_before(statement, tree)):
        if isinstance(before, ast.Assign) and len(before.targets) == 1:
            target = before.targets[0]
            if isinstance(target, (ast.Name, ast.Attribute)) and ast.unparse(target) == path:
                return before.value
        if not _writes_data(before, path):
            return None
    return None


def _before(statement: ast.stmt, tree: Tree) -> list[ast.stmt]:
    """The statements of a block in front of one."""
    for _, block in ast.iter_fields(tree.parents[statement]):
        if isinstance(block, list) and any(one is statement for one in block):
            return block[: next(i for i, one in enumerate(block) if one is statement)]
    return []


def _writes_data(statement: ast.stmt, path: str) -> bool:
    """Whether a statement is `path.weight.data = w` or `path.weight.data.copy_(w)`, and no more."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _is_data(statement.targets[0], path) and not _runs(statement.value)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    given = (*call.args, *(part.value for part in call.keywords))
    return _is_data(call.func.value, path) and not any(map(_runs, given))


def _is_data(node: ast.expr, path: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "data"
        and isinstance(node.value, ast.Attribute)
        and ast.unparse(node.value.value) == path
    )


def _runs(node: ast.expr) -> bool:
    return any(isinstance(part, _RUNS) for part in ast.walk(node))
