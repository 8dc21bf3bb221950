"""Lists that a function writes out itself, and shortens, lengthens or turns by a method."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from isograd.convert.analysis.own_lists import is_own_list
from isograd.static_graph.scope import below, blocks, children

#: Methods that the static graph runs as plain Python, outside the gradient.
_METHODS = frozenset("pop insert extend reverse".split())
#: Builtins that read a list and keep it nowhere.
_READERS = frozenset("len enumerate zip reversed list tuple sum range".split())
_BRANCHING = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Parents = dict[ast.AST, ast.AST]


@dataclass(frozen=True)
class Change:
    """A call that changes a list which no other name holds, and the statement it stands in."""

    call: ast.Call
    statement: ast.stmt
    name: str

    @property
    def method(self) -> str:
        """The method's name."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.attr


def changes_of(function: _Function) -> Iterator[Change]:
    """The changes that can be written as a new value of the list's name: `kept = kept[:-1]`."""
    nodes = below(function)
    calls = [(node, name) for node in nodes if (name := changed_name(node))]
    if not calls:
        return
    parents = {child: node for node in nodes for child in children(node)}
    for call, name in calls:
        assert isinstance(call, ast.Call)
        statement = _statement(call, function, parents)
        if statement is None or not is_own_list(name, nodes):
            continue
        change = Change(call, statement, name)
        if not _is_written_so(change, parents) or not _stands_alone(statement, parents):
            continue
        if _is_held_once(name, function, nodes, parents) and _reads_in_order(change, parents):
            yield change


def changed_name(node: ast.AST) -> str:
    """The name of `name.pop()` and its like; empty for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return ""
    given = node.args
    if node.func.attr not in _METHODS or not isinstance(node.func.value, ast.Name):
        return ""
    is_fit = {
        "pop": not given or (len(given) == 1 and ast.unparse(given[0]) in ("0", "-1")),
        "insert": len(given) == 2 and ast.unparse(given[0]) == "0",
        "extend": len(given) == 1 and _is_display(given[0]),
        "reverse": not given,
    }
    return node.func.value.id if is_fit[node.func.attr] else ""


def _is_display(node: ast.expr) -> bool:
    """`[a, b]` or a comprehension."""
    if isinstance(node, ast.ListComp):
        return True
    return isinstance(node, ast.List) and not any(isinstance(n, ast.Starred) for n in node.elts)


def _statement(call: ast.Call, function: _Function, parents: _Parents) -> ast.stmt | None:
    """The statement of a call that is computed exactly when the statement runs.

    None also where the statement stands in a while loop, a try, a branch that a tensor may decide,
    or a loop through the list.
    """
    name = changed_name(call)
    node: ast.AST = call
    while not isinstance(node, ast.stmt):
        node = parents[node]
        if isinstance(node, (*_BRANCHING, *_APART)):
            return None
    if not isinstance(node, _STATEMENTS):
        return None
    above: ast.AST = node
    while above is not function:
        above = parents[above]
        if above is function:
            break
        if isinstance(above, (*_APART, ast.While, ast.Try)):
            return None
        if isinstance(above, ast.For) and name in _names(above.iter):
            return None
        if isinstance(above, ast.If) and not _is_static(above.test, function, parents):
            return None
    return node


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_static(test: ast.expr, function: _Function, parents: _Parents) -> bool:
    """Whether a test reads attributes of the object, rounds of loops and outer names alone."""
    if any(isinstance(part, ast.Call) and not _asks_kind(part) for part in ast.walk(test)):
        return False
    given = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    given -= {part.arg for part in function.args.args[:1]}  # the object itself
    stored = [
        part
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    ]
    computed = {part.id for part in stored if not _counts(part, parents)}
    return not _names(test) & (given | computed)


def _asks_kind(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("len", "isinstance", "hasattr")


def _counts(name: ast.Name, parents: _Parents) -> bool:
    """Whether a name is a round's number: of `range`, or the first of `enumerate`."""
    above, kind = parents[name], "range"
    if isinstance(above, ast.Tuple) and above.elts[0] is name:
        above, kind = parents[above], "enumerate"
    if not isinstance(above, ast.For) or not isinstance(above.iter, ast.Call):
        return False
    return bool(getattr(above.iter.func, "id", "") == kind)


def _is_written_so(change: Change, parents: _Parents) -> bool:
    """Whether only a `pop` is used for its value; the other methods return None."""
    is_statement = isinstance(parents[change.call], ast.Expr)
    return is_statement or change.method == "pop"


def _stands_alone(statement: ast.stmt, parents: _Parents) -> bool:
    """Whether a statement begins its line."""
    around = parents[statement]
    for statements in blocks(around):
        if statement in statements:
            place = statements.index(statement)
            if place:
                return (statements[place - 1].end_lineno or 0) < statement.lineno
            heads = [getattr(around, part, None) for part in ("test", "iter", "args", "returns")]
            lines = [getattr(head, "end_lineno", 0) or 0 for head in heads if head is not None]
            return bool(max([around.lineno, *lines]) < statement.lineno)  # type: ignore[attr-defined]
    return False


def _is_held_once(name: str, function: _Function, nodes: list[ast.AST], parents: _Parents) -> bool:
    """Whether nothing but the name holds the list while the function runs."""
    for node in nodes:
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if isinstance(node, _APART) and node is not function and name in _names(node):
            return False
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if not _is_only_read(node, parents):
                return False
    return True


def _is_only_read(node: ast.Name, parents: _Parents) -> bool:
    above = parents[node]
    if isinstance(above, ast.Attribute):
        call = parents[above]
        return isinstance(call, ast.Call) and call.func is above
    if isinstance(above, ast.Subscript):
        return above.value is node
    if isinstance(above, ast.Call):
        return node in above.args and getattr(above.func, "id", "") in _READERS
    if isinstance(above, ast.Tuple):
        above = parents[above]
    if isinstance(above, (ast.For, ast.comprehension)):
        return above.iter is node
    return isinstance(above, (ast.Return, ast.If, ast.While, ast.Compare, ast.UnaryOp))


def _reads_in_order(change: Change, parents: _Parents) -> bool:
    """Whether a statement mentions the list in such calls alone, the first of which comes first."""
    mentions = [
        part
        for part in ast.walk(change.statement)
        if isinstance(part, ast.Name) and part.id == change.name
    ]
    if parents[change.call] is change.statement and isinstance(change.statement, ast.Expr):
        return True  # what it is given is computed before the list changes
    return len(mentions) == 1
