"""Names of a function that are read where not every path to there has bound them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from isograd.static_graph.scope import below, children

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: What tells an unbound name from one that holds None.
_TELLING = frozenset("locals vars dir NameError UnboundLocalError".split())


def unbound_reads(function: _Function) -> dict[str, ast.stmt]:
    """Such names, each with the statement before which it can be bound to None.

    All that binds or reads the name stands in that statement or after it, so that no value is lost;
    names that inner functions know are left out.
    """
    own = _own_names(function)
    if not own:
        return {}
    reads = _Reads(own)
    reads.block(function.body, frozenset())
    found = {}
    for name in sorted(reads.found):
        place = _place(name, function.body)
        if place is not None:
            found[name] = place
    return found


def names_in(node: ast.AST, hidden: frozenset[str] = frozenset()) -> Iterator[ast.Name]:
    """The names of a statement or an expression, without those that comprehensions bind."""
    if isinstance(node, ast.Name):
        if node.id not in hidden:
            yield node
        return
    if isinstance(node, _SCOPES):
        return
    if isinstance(node, _COMPREHENSIONS):
        bound = (part for one in node.generators for part in below(one.target))
        hidden = hidden | {part.id for part in bound if isinstance(part, ast.Name)}
    for child in children(node):
        yield from names_in(child, hidden)


def _own_names(function: _Function) -> frozenset[str]:
    """What the function binds and nothing else knows; none where it asks which are bound."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    known = {one.arg for one in arguments if one is not None}
    for node in below(function):
        if isinstance(node, ast.Name) and node.id in _TELLING:
            return frozenset()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            known.update(node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            known.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            known.add(node.name or "")
        elif isinstance(node, _SCOPES) and node is not function:
            known.add(getattr(node, "name", ""))
            known.update(part.id for part in below(node) if isinstance(part, ast.Name))
    bound = {
        part.id
        for statement in function.body
        for part in names_in(statement)
        if isinstance(part.ctx, ast.Store)
    }
    return frozenset(bound - known)


class _Reads:
    """Goes through statements with the names that are bound on every path to them."""

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own
        self.found: set[str] = set()

    def block(self, statements: Sequence[ast.stmt], bound: frozenset[str]) -> frozenset[str]:
        """What is bound behind these statements; all names where none goes on from there."""
        for statement in statements:
            bound = self._statement(statement, bound)
        return bound

    def _statement(self, node: ast.stmt, bound: frozenset[str]) -> frozenset[str]:
        if isinstance(node, _SCOPES):
            return bound
        if isinstance(node, ast.If):
            bound = self._expression(node.test, bound)
            return self.block(node.body, bound) & self.block(node.orelse, bound)
        if isinstance(node, _LOOPS):
            inside = bound
            if isinstance(node, ast.While):
                inside = bound = self._expression(node.test, bound)
            else:
                bound = self._expression(node.iter, bound)
                inside = self._expression(node.target, bound)
            self.block(node.body, inside)
            self.block(node.orelse, bound)
            return bound
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                bound = self._expression(item, bound)
            return self.block(node.body, bound)
        if isinstance(node, (ast.Try, ast.Match)):
            return self._one_of_many(node, bound)
        bound = self._expression(node, bound)
        return self.own if isinstance(node, _ENDS) else bound

    def _one_of_many(self, node: ast.Try | ast.Match, bound: frozenset[str]) -> frozenset[str]:
        """Behind a match nothing of it is bound for sure; behind `try` what every way binds."""
        if isinstance(node, ast.Match):
            bound = self._expression(node.subject, bound)
            for case in node.cases:
                self.block(case.body, bound)
            return bound
        behind = self.block(node.orelse, self.block(node.body, bound))
        for handler in node.handlers:
            behind = behind & self.block(handler.body, bound)
        return behind | self.block(node.finalbody, bound)

    def _expression(self, node: ast.AST, bound: frozenset[str]) -> frozenset[str]:
        names = list(names_in(node))
        is_changed = isinstance(node, ast.AugAssign)
        stored = {part.id for part in names if isinstance(part.ctx, ast.Store)}
        read = {part.id for part in names if isinstance(part.ctx, ast.Load)}
        walrus = {
            part.target.id
            for part in below(node)
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name)
        }
        self.found |= ((read - walrus) | (stored if is_changed else set())) & self.own - bound
        return bound | (stored & self.own)


def _place(name: str, statements: Sequence[ast.stmt]) -> ast.stmt | None:
    """The first statement of the innermost block outside of loops that has all uses of a name."""
    using = [one for one in statements if _uses(name, one)]
    if not using:
        return None
    first = using[0]
    if len(using) > 1 or isinstance(first, _LOOPS):
        return first
    for block in _blocks(first):
        inner = [one for one in block if _uses(name, one)]
        outside = sum(part.id == name for part in names_in(first))
        inside = sum(part.id == name for one in inner for part in names_in(one))
        if inside == outside:
            place = _place(name, block)
            is_elif = isinstance(first, ast.If) and block is first.orelse and len(block) == 1
            return first if is_elif and place is block[0] else place
    return first


def _blocks(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    if isinstance(node, ast.If):
        yield node.body
        yield node.orelse
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node.body


def _uses(name: str, node: ast.AST) -> bool:
    return any(part.id == name for part in names_in(node) if not isinstance(part.ctx, ast.Del))
