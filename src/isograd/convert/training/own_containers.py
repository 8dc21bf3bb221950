"""Dictionaries and lists that a forward part makes and fills: `losses = {}; losses["ce"] = …`.

The compiler takes them where nothing else holds them while they are filled: in a graph a change
makes another dictionary, which an earlier name of it would not see.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import changed_by
from isograd.convert.tree import Tree
from isograd.scan.names_in_place import changes_in_place

_MAKING = ("dict", "list")
_KEEPING = (ast.Dict, ast.List, ast.Tuple)
#: The keys and positions of what is put in.
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


def own_containers(
    statements: list[ast.stmt], file: FileEdit, is_fresh: Callable[[ast.expr], bool]
) -> OwnContainers:
    """The containers that statements of one level make once, and fill before they read them.

    statements: those of a round, in their order.  is_fresh: whether nothing but a container holds
    the value of an expression that is put into it.
    """
    found, tree = OwnContainers(), file.tree
    changed = _changed_in_place(statements, file)
    for statement in statements:
        name = _made_by(statement)
        if not name or name in found.made:
            continue
        fills = [s for s in statements if any(_filled(n)[0] == name for n in ast.walk(s))]
        if not fills or fills[0].lineno <= statement.lineno:
            continue
        nodes = [n for s in statements for n in ast.walk(s) if getattr(n, "id", "") == name]
        own = _is_own(nodes, statement, fills, tree)
        if own and not _may_be_shared(nodes, fills, changed, tree, is_fresh):
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
        elif isinstance(parent, (ast.Assign, *_KEEPING, ast.NamedExpr)):
            return False  # another name of it, or one that keeps it
    return True


def _changed_in_place(statements: list[ast.stmt], file: FileEdit) -> set[str]:
    """Names whose tensors may change: `x += y`, `x.mul_(y)`, `relu(x, inplace=True)`.

    What is put into a container changes no tensor.
    """
    found = set[str]()
    for statement in statements:
        found |= changed_by(statement, file)
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign):
                found.add(getattr(node.target, "id", ""))
    return found - {_made_by(statement) for statement in statements}


def _may_be_shared(
    nodes: list[ast.AST],
    fills: list[ast.stmt],
    changed: set[str],
    tree: Tree,
    is_fresh: Callable[[ast.expr], bool],
) -> bool:
    """Whether an element changes in place (`losses["a"] += x`) that another name may hold, too.

    In a graph the change makes another tensor.  fills: the statements of the round that fill it;
    what a loop among them reads may be read again.  changed: names of what else changes so.
    """
    put: list[ast.expr] = []
    named, last = [0], 0
    for node in nodes:
        parent = tree.parents[node]
        above = tree.parents[parent]
        line: int = getattr(node, "lineno", 0)
        if isinstance(parent, ast.Assign):
            put += _elements(parent.value)
        elif isinstance(parent, ast.Attribute) and isinstance(above, ast.Call):
            put += above.args
        elif not isinstance(parent, ast.Subscript):
            continue
        elif isinstance(above, ast.AugAssign) and above.target is parent:
            last = max(last, *(s.end_lineno or 0 for s in fills if s.lineno <= line))
        elif isinstance(above, ast.Assign):
            put += [above.value] if parent in above.targets else []
            named += [line] if above.value is parent else []
        elif isinstance(above, (*_KEEPING, ast.IfExp, ast.NamedExpr)):
            named.append(line)
        elif isinstance(above, ast.Attribute) and changes_in_place(above.attr):
            return True
    kept = [value for value in put if not is_fresh(value)]
    names = {part.id for one in kept for part in ast.walk(one) if isinstance(part, ast.Name)}
    is_named = any(0 < line <= last for line in named)
    return bool(names & changed) or (last > 0 and (is_named or bool(kept)))


def _elements(made: ast.expr) -> list[ast.expr]:
    """What a container is made with."""
    if isinstance(made, ast.Dict):
        return made.values
    if isinstance(made, ast.Call):
        return [*made.args, *(part.value for part in made.keywords)]
    return [*getattr(made, "elts", [])]


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
