"""Dictionaries and lists that a forward part makes and fills: `losses = {}; losses["ce"] = …`.

The compiler takes them where nothing else holds them while they are filled: in a graph a change
makes another dictionary, which an earlier name of it would not see.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from isograd.convert.tree import Tree

_MAKING = ("dict", "list")
#: What the bases of a change may stand in; all else may keep the container.
_KEY = (ast.Constant, ast.JoinedStr, ast.Name)


@dataclass(frozen=True)
class OwnContainers:
    """The containers of one forward part.

    made: by name the statement that makes it.  fills: by name the statements of the forward part's
    level that fill it.
    """

    made: dict[str, ast.stmt] = field(default_factory=dict)
    fills: dict[str, list[ast.stmt]] = field(default_factory=dict)

    def may_fill(self, node: ast.AST) -> bool:
        """Whether a node is `losses["ce"]` that is bound, or `losses.append(…)`."""
        name, key = _filled(node)
        return name in self.made and (key is None or isinstance(key, _KEY))


def own_containers(statements: list[ast.stmt], tree: Tree) -> OwnContainers:
    """The containers that statements of one level make once, and fill before they read them.

    statements: those of a round, in their order.
    """
    found = OwnContainers()
    for statement in statements:
        name = _made_by(statement)
        if not name or name in found.made:
            continue
        fills = [s for s in statements if any(_filled(n)[0] == name for n in ast.walk(s))]
        if not fills or fills[0].lineno <= statement.lineno:
            continue
        nodes = [n for s in statements for n in ast.walk(s) if getattr(n, "id", "") == name]
        if _is_own(nodes, statement, fills, tree):
            found.made[name] = statement
            found.fills[name] = fills
    return found


def _is_own(nodes: list[ast.AST], made: ast.stmt, fills: list[ast.stmt], tree: Tree) -> bool:
    """Whether one statement of a round binds a name, and nothing reads it while it is filled.

    nodes: those of the name in the round.
    """
    last = fills[-1].end_lineno or 0
    for node in nodes:
        parent = tree.parents[node]
        assert isinstance(node, ast.Name)
        if not isinstance(node.ctx, ast.Load):
            if parent is not made:
                return False
        elif made.lineno <= node.lineno <= last:
            is_element = isinstance(parent, ast.Subscript) and parent.value is node
            is_filled = isinstance(parent, ast.Attribute) and _filled(tree.parents[parent])[0]
            if not (is_element or is_filled):
                return False
        elif isinstance(parent, (ast.Assign, ast.Dict, ast.List, ast.Tuple, ast.NamedExpr)):
            return False  # another name of it, or one that keeps it
    return True


def _made_by(statement: ast.stmt) -> str:
    """The name that a statement binds to a new container."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return ""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    is_call = isinstance(value, ast.Call) and getattr(value.func, "id", "") in _MAKING
    if len(targets) != 1 or not (is_call or isinstance(value, (ast.Dict, ast.List))):
        return ""
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _filled(node: ast.AST) -> tuple[str, ast.expr | None]:
    """The name of a container that a node fills, with the key; empty where it fills none."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return getattr(node.value, "id", ""), node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "append" and len(node.args) == 1 and not node.keywords:
            return getattr(node.func.value, "id", ""), None
    return "", None


def filled_in(statement: ast.stmt, containers: OwnContainers) -> set[str]:
    """The containers that a statement fills."""
    return {_filled(node)[0] for node in ast.walk(statement)}.intersection(containers.made)


def fills_alone(statement: ast.stmt, containers: OwnContainers) -> bool:
    """Whether a statement is `losses.append(…)` of such a container."""
    return isinstance(statement, ast.Expr) and containers.may_fill(statement.value)


def conditions_of(statement: ast.stmt, containers: OwnContainers) -> list[ast.If]:
    """The conditions under which a statement fills containers."""
    return [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.If)
        and any(_filled(part)[0] in containers.made for part in ast.walk(node))
    ]
