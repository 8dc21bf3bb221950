"""Statements within a forward part that wait until the step is taken.

ratio = torch.exp(policy(states) - old)
with torch.no_grad():
    shares.append((ratio > 1.2).float().mean().item())
advantage = advantages[rows]
loss = -(ratio * advantage).mean()

The step is called in place of the last statement, because `advantage` goes in.  What reads its
results stands behind it then.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import changed_by, changes_what_is_read
from isograd.convert.training.paths import bound_by, read_by

_LEAVING = (ast.Continue, ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)


def waiting_statements(
    between: list[ast.stmt], forward: list[ast.stmt], bound: Collection[str], file: FileEdit
) -> list[ast.stmt] | None:
    """The statements that read results of a forward part; None where one of them cannot wait.

    between: those of the loop that stand between the statements of the forward part.  bound: the
    names that it binds.
    """
    names, found = set(bound), list[ast.stmt]()
    for statement in between:
        if read_by(statement) & names:
            found.append(statement)
            names |= bound_by(statement)
    for statement in found:
        later = [s for s in (*between, *forward) if s.lineno > statement.lineno and s not in found]
        others = [s for s in later if s not in forward]
        if not _is_one_block(statement) or not all(_only_computes(s, file) for s in others):
            return None
        if any(_meet(statement, other, file) for other in later):
            return None
    return found


def _meet(first: ast.stmt, second: ast.stmt, file: FileEdit) -> bool:
    """Whether two statements do something else in the other order."""
    if bound_by(first) & bound_by(second):
        return True
    pairs = ((first, second), (second, first))
    return any(changes_what_is_read(*pair, file) for pair in pairs)


def _is_one_block(statement: ast.stmt) -> bool:
    """Whether a statement leaves nothing around it, and its lines are its own."""
    return not any(
        isinstance(node, _LEAVING) or (isinstance(node, ast.Constant) and "\n" in str(node.value))
        for node in ast.walk(statement)
    )


def _only_computes(statement: ast.stmt, file: FileEdit) -> bool:
    """Whether a statement but binds values that torch computes, and draws none."""
    if isinstance(statement, ast.If):
        is_plain = all(_is_of_torch(call, file) for call in _calls(statement.test))
        parts = (*statement.body, *statement.orelse)
        return is_plain and all(_only_computes(part, file) for part in parts)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or changed_by(statement, file):
        return False
    return all(_is_of_torch(call, file) for call in _calls(statement))


def _calls(top: ast.AST) -> Iterable[ast.Call]:
    return (node for node in ast.walk(top) if isinstance(node, ast.Call))


def _is_of_torch(call: ast.Call, file: FileEdit) -> bool:
    use = file.use(call.func)
    entry = file.entry(use.api) if use is not None else None
    if use is None or entry is None or not use.api.startswith("torch."):
        return False
    return not entry.is_random and not use.api.endswith(("_", "backward"))
