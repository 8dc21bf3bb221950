"""What names may hold where they are read, by the scopes around them."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from isograd.convert.training.index import Index
from isograd.convert.tree import names_of, pairs_of

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


@dataclass(frozen=True)
class ReachingValues:
    """Asks of one project."""

    index: Index

    def reaching(
        self, node: ast.Name, scope: ast.AST, inside: Collection[ast.AST] = ()
    ) -> tuple[list[ast.expr], bool]:
        """What a name may have been bound to when it is read, and whether that may be nothing.

        inside: statements whose bindings do not count.
        """
        bindings = [one for one in self.bindings(node.id, scope) if one[0] not in inside]
        inner: ast.AST = node
        for above in self.index.above(node):
            for made in getattr(above, "generators", ()):
                if inner is not made and node.id in names_of(made.target):
                    return [made.iter], False
            block = next((b for b in _blocks(above) if inner in b), [])
            before = block[: block.index(inner)] if block else []
            kills = [s for s in before if _binds_always(s, node.id)]
            is_target = isinstance(above, ast.For) and inner in above.body
            is_target = is_target and node.id in names_of(above.target)  # type: ignore[attr-defined]
            if kills or is_target or above is scope:
                first = kills[-1] if kills else above
                values = [one[1] for one in bindings if _lies_in(one, first, inner)]
                return values, not kills and not is_target
            inner = above
        return [value for _, value in bindings], True

    def bindings(self, name: str, scope: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
        """The statements of a scope that bind a name or put into it, and their values."""
        for node in own_nodes(scope):
            if isinstance(node, ast.Assign):
                pairs = [p for target in node.targets for p in pairs_of(target, node.value)]
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                pairs = [(node.target, node.value)] if node.value is not None else []
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                pairs = [*pairs_of(node.target, node.iter)]
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                pairs = [*pairs_of(node.optional_vars, node.context_expr)]
            else:
                continue
            for target, value in pairs:
                while isinstance(target, (ast.Starred, ast.Subscript)):
                    target = target.value
                if isinstance(target, ast.Name) and target.id == name:
                    yield node, value
        for container, value in self.index.puts.get(name, ()):
            if isinstance(container, ast.Name) and self.scope(container) is scope:
                yield container, value

    def scope(self, node: ast.AST) -> ast.AST:
        """The function or module in which a node stands."""
        return next(s for s in self.index.above(node) if isinstance(s, SCOPES))


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope that are in no inner one."""
    waiting = deque(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def parameters_of(scope: ast.AST) -> list[str]:
    """The parameters of a function; none of a module."""
    arguments = getattr(scope, "args", None)
    return [p.arg for p in ast.walk(arguments) if isinstance(p, ast.arg)] if arguments else []


def _blocks(node: ast.AST) -> Iterator[list[ast.AST]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield value


def _binds_always(statement: ast.AST, name: str) -> bool:
    """Whether a statement of a block gives a name another value, whatever happens."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    parts = (p for t in targets if t is not None for p in ast.walk(t))
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
        for part in parts
    )


def _lies_in(binding: tuple[ast.AST, ast.expr], first: ast.AST, last: ast.AST) -> bool:
    """Whether a binding is reached between the statement `first` and the end of `last`.

    What `last` binds itself is bound behind what it reads.
    """
    statement, value = binding
    start, end = getattr(first, "lineno", 0), getattr(last, "end_lineno", None) or value.lineno
    return statement is not last and start <= value.lineno <= end


def import_of(name: str, module: ast.AST) -> tuple[str, str] | None:
    """The package that an import takes a name of, and the name there."""
    for node in ast.walk(module):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                if (one.asname or one.name.partition(".")[0]) == name:
                    is_from = isinstance(node, ast.ImportFrom)
                    package = (getattr(node, "module", "") or "") if is_from else one.name
                    return package, one.name if is_from else ""
    return None
