"""Dataclasses that say themselves what `record[key]` is, in a compiled step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.training import record_writing as write
from isograd.convert.training.index import Index
from isograd.convert.training.records import Record, RecordError
from isograd.static_graph.scope import FileScope, below

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ELEMENTS = "__getitem__"


def elements_read(function: _Function, scope: FileScope, index: Index) -> Iterator[ast.Subscript]:
    """The reads `x[key]` of a function whose x may be a record."""
    for node in below(function):
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node.slice, ast.Tuple) or _is_ellipsis_or_none(node.slice):
            continue
        if may_be_record(node.value, function, scope, index):
            yield node


def run_by(function: _Function) -> Iterator[ast.AST]:
    """What a function runs: neither annotations nor defaults nor decorators."""
    for statement in function.body:
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            yield node
            for name, value in ast.iter_fields(node):
                if name in ("annotation", "returns", "decorator_list"):
                    continue
                parts = value if isinstance(value, list) else [value]
                waiting += [part for part in parts if isinstance(part, ast.AST)]


def _is_ellipsis_or_none(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and (key.value is None or key.value is ...)


def may_be_record(
    node: ast.expr,
    function: _Function,
    scope: FileScope,
    index: Index,
    seen: frozenset[str] = frozenset(),
) -> bool:
    """Whether a value may come from a function of the project or from outside of this one."""
    if isinstance(node, ast.Call):
        if scope.qualified(node.func).startswith(("torch.", "builtins.", "math.", "numpy.")):
            return False
        if isinstance(node.func, ast.Attribute):
            root = node.func.value
            is_own = isinstance(root, ast.Name) and root.id == _object_of(function, index)
            return is_own or node.func.attr in index.functions
        return True
    if isinstance(node, ast.IfExp):
        parts = (node.body, node.orelse)
        return any(may_be_record(part, function, scope, index, seen) for part in parts)
    if isinstance(node, ast.Subscript):
        return may_be_record(node.value, function, scope, index, seen)
    if isinstance(node, ast.Attribute):
        return any(node.attr in names for names in (index.values, index.arguments))
    if not isinstance(node, ast.Name) or node.id == _object_of(function, index):
        return False
    if node.id in seen:
        return False
    values = [*_bound_to(node.id, function)]
    return any(
        value is None or may_be_record(value, function, scope, index, seen | {node.id})
        for value in values
    )


def _object_of(function: _Function, index: Index) -> str:
    """The name of the object of a method."""
    named = [*function.args.posonlyargs, *function.args.args]
    return named[0].arg if named and index.owner(function) is not None else ""


def _bound_to(name: str, function: _Function) -> Iterator[ast.expr | None]:
    """What a function binds to a name; None where that is not seen."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    if any(part is not None and part.arg == name for part in named):
        yield None
    for node in below(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if any(getattr(part, "id", "") == name for part in ast.walk(target)):
                    yield node.value
        elif isinstance(node, (ast.For, ast.comprehension, ast.NamedExpr)):
            if any(getattr(part, "id", "") == name for part in ast.walk(node.target)):
                yield None


def element_methods(kinds: list[Record]) -> Iterator[tuple[str, ast.AST, write.Made]]:
    """What is written in the methods that `record[key]` runs, which take the graph's tuple."""
    owners: dict[str, tuple[str, ast.ClassDef, ast.FunctionDef]] = {}
    for record in (one for one in kinds if one.has_elements):
        waiting, seen = [_ELEMENTS], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            found = record.methods[name]
            if owners.setdefault(name, found)[2] is not found[2]:
                raise RecordError(found[0], found[2], f"several classes of records have {name}")
            for node, made, called in _of_method(record, *found):
                waiting += [called] if called else []
                yield found[0], node, made


def _of_method(
    record: Record, file: str, cls: ast.ClassDef, method: ast.FunctionDef
) -> Iterator[tuple[ast.AST, write.Made, str]]:
    """What is written in a method: the node, its text, and the method that it calls."""
    if method.decorator_list or not method.args.args:
        raise RecordError(file, method, f"{cls.name}.{method.name} is no plain method")
    me = method.args.args[0].arg
    parents = {child: node for node in below(method) for child in ast.iter_child_nodes(node)}
    for node in below(method):
        if not isinstance(node, ast.Name) or node.id != me:
            continue
        parent = parents[node]
        above = parents.get(parent)
        if isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
            is_called = isinstance(above, ast.Call) and above.func is parent
            if parent.attr in record.fields and not is_called:
                yield parent, write.reading(parent, None), ""
                continue
            if parent.attr == "__dict__":
                yield parent, write.fields_of(me), ""
                continue
            owner = record.methods.get(parent.attr)
            if is_called and owner is not None and owner[1] is cls:
                yield above, write.calling(above, cls.name, me), parent.attr  # type: ignore[misc, arg-type]
                continue
        elif isinstance(parent, ast.Call) and parent.args and parent.args[0] is node:
            asked = getattr(parent.func, "id", "")
            if asked == "vars" and len(parent.args) == 1:
                yield parent, write.fields_of(me), ""
                continue
            if asked == "getattr" and len(parent.args) == 2:
                yield parent, write.named_field(parent, me), ""
                continue
        raise RecordError(file, node, f"{cls.name}.{method.name} uses its object as a whole")
