"""Names, attributes and elements that an expression reads, as paths."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated

BUILTINS = frozenset(dir(builtins))


def path_of(node: ast.AST) -> str:
    """`name`, `name.attribute` or `name[0]`, as far as one is written; else empty."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = path_of(node.value)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        before = path_of(node.value)
        return f"{before}[{node.slice.value!r}]" if before else ""
    return ""


def name_for(path: str) -> str:
    """A name in a step for an object: `net` of `self.net`, `opts_0` of `opts[0]`."""
    last = path.rpartition(".")[2]
    if not last.isidentifier():
        last = re.sub(r"\W+", "_", last).strip("_")
    return last if last.isidentifier() else f"of_{last}"


def is_number(text: str) -> bool:
    """Whether an expression is a constant that is written out."""
    return isinstance(ast.parse(text, mode="eval").body, ast.Constant)


def is_fixed(test: ast.expr, loop: ast.AST) -> bool:
    """Whether a condition is the same in all rounds of a loop: it calls nothing, and reads nothing
    that the loop binds."""
    return not read_by(test) & bound_by(loop) and not any(calls_in([test]))


def scope_of(loop: Repeated, file: FileEdit) -> ast.AST:
    """The function or module whose names a step reads; a function that is a step's own is it."""
    return loop if isinstance(loop, ast.FunctionDef) else file.tree.scope(loop)


def root_of(node: ast.AST) -> ast.Name | None:
    """The name with which a chain of attributes, elements and calls begins."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node if isinstance(node, ast.Name) else None


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def bound_by(statement: ast.AST) -> set[str]:
    """The names that a statement binds, with all that stands in it; those of comprehensions not."""
    own = {
        target
        for part in ast.walk(statement)
        if isinstance(part, ast.comprehension)
        for target in ast.walk(part.target)
    }
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, (ast.Store, ast.Del))
        and node not in own
    }


def names_read(node: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[ast.Name]:
    """The names that are read, in their order; those that a comprehension binds for itself not."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in own:
            yield node
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from names_read(node.generators[0].iter, own)
        targets = (part.target for part in node.generators)
        own = own.union(*map(bound_by, targets))
        first = node.generators[0]
        inner = [part for part in ast.iter_child_nodes(node) if part is not first]
        inner += [*first.ifs]
    else:
        inner = list(ast.iter_child_nodes(node))
    for child in inner:
        yield from names_read(child, own)


def read_by(*nodes: ast.AST) -> set[str]:
    """The names that statements or expressions read; `x += y` reads x."""
    found = set()
    for top in nodes:
        found |= {name.id for name in names_read(top)}
        for node in ast.walk(top):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def read_before_bound(statements: Iterable[ast.stmt], known: set[str]) -> set[str]:
    """The names that statements read where they may not have bound them; known: those bound.

    `known` grows by what is bound on every way through the statements.
    """
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            found |= read_by(statement.test) - known
            ways = set(known), set(known)
            found |= read_before_bound(statement.body, ways[0])
            found |= read_before_bound(statement.orelse, ways[1])
            going_on = [
                way
                for block, way in zip((statement.body, statement.orelse), ways, strict=True)
                if not (block and _raises(block[-1]))
            ]
            known |= set.intersection(*going_on) if going_on else set.union(*ways)
        elif isinstance(statement, ast.For):
            found |= read_by(statement.iter) - known
            found |= read_before_bound(statement.body, known | bound_by(statement.target))
            found |= read_before_bound(statement.orelse, set(known))
        else:
            found |= read_by(statement) - known
            known |= bound_by(statement)
    return found


def _raises(statement: ast.stmt) -> bool:
    """Whether nothing is computed behind a statement, because it raises in each branch."""
    if isinstance(statement, ast.If) and statement.orelse:
        return _raises(statement.body[-1]) and _raises(statement.orelse[-1])
    return isinstance(statement, ast.Raise)


def calls_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """All calls in statements or expressions."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Call):
                yield node


def method_of(call: ast.AST) -> tuple[str, str]:
    """The receiver's path and the method's name of a call; empty where it is none."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return path_of(call.func.value), call.func.attr
    return "", ""


def statement_call(statement: ast.stmt) -> ast.Call | None:
    """The call that is a statement of its own."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    return None


def block_of(statement: ast.stmt, file: FileEdit) -> list[ast.stmt]:
    """The statements among which one stands."""
    parent = file.tree.parents[statement]
    for _, value in ast.iter_fields(parent):
        if isinstance(value, list) and any(item is statement for item in value):
            return value
    return [statement]


def unshared_changes(statements: Iterable[ast.stmt]) -> set[ast.AugAssign]:
    """The `x += y` whose x no other name or container holds: they are `x = x + y`."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    shared = {
        part.id
        for node in nodes
        for part in _kept_by(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    return {
        node
        for node in nodes
        if isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id not in shared
    }


def _kept_by(node: ast.AST) -> list[ast.expr | None]:
    """The values that an assignment or a container holds as they are."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        return [node.value]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [*node.elts]
    if isinstance(node, ast.Dict):
        return [*node.values]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("append", "insert"):
        return [*node.args]
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
