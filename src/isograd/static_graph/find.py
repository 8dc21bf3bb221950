"""Finds the constructs of the rules in the functions of a file that would be compiled."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isograd.static_graph.across import Reached, found_elsewhere, runs_outside
from isograd.static_graph.detectors import DETECTORS, FILE_DETECTORS
from isograd.static_graph.detectors.common import Found
from isograd.static_graph.executed import is_executed_as_same
from isograd.static_graph.rule import Occurrence, Rule
from isograd.static_graph.scope import DICT, LIST, FileScope, below, is_self_attribute
from isograd.static_graph.table import rules
from isograd.static_graph.values import Locals

_ENTRIES = ("construct", "forward")


@dataclass(frozen=True)
class CompiledFunction:
    """A function that would be compiled with its class, empty outside of classes."""

    cls: str
    node: ast.FunctionDef


def find(text: str) -> list[Occurrence]:
    """All constructs of a file, in the order of its lines; SyntaxError where it is no Python."""
    return find_in(ast.parse(text))


def find_in(tree: ast.Module, is_torch: bool = False) -> list[Occurrence]:
    """All constructs of a tree; of torch code only those that outlive conversion."""
    return find_in_file(FileScope(tree), is_torch)


def find_in_file(file: FileScope, is_torch: bool = False) -> list[Occurrence]:
    """All constructs of a file whose names are read already, as `find_in`."""
    index = _index(is_torch)
    found: set[Occurrence] = set()
    finder = functools.partial(_of_function, index=index)
    for compiled in compiled_functions(file):
        found.update(_in_function(file, compiled, index))
        found.update(found_elsewhere(file, compiled.cls, compiled.node, finder))
    for rule in index.rules:
        if rule.detector in FILE_DETECTORS:
            for cls, node in FILE_DETECTORS[rule.detector](file):
                found.add(_at(rule.code, node, "", cls))
    return sorted(found, key=_order)


def _order(o: Occurrence) -> tuple[int, int, str, str, str, str, str]:
    return o.line, o.column, o.code, o.inside, o.function, o.cls, o.detail


def _of_function(file: FileScope, name: str, index: _RuleIndex) -> Reached:
    """A function and what it calls within its file, with the constructs in each."""
    reached = _reached(file, [CompiledFunction("", file.functions[name])])
    return [(c.cls, c.node, list(_in_function(file, c, index))) for c in reached]


def compiled_functions(file: FileScope) -> list[CompiledFunction]:
    """The constructs (or forwards) of the file's networks, and what they call within the file."""
    waiting: list[CompiledFunction] = []
    for name, scope in file.classes.items():
        if file.is_cell(name) and not is_executed_as_same(file, name):
            entries = (scope.methods[e] for e in _ENTRIES if e in scope.methods)
            waiting += [CompiledFunction(name, entry) for entry in entries]
    for function in file.functions.values():
        if any(file.qualified(_target(d)) in _JITS for d in function.decorator_list):
            waiting.append(CompiledFunction("", function))
    return _reached(file, waiting)


def find_reached(
    tree: ast.Module, cls: str, function: str = "", *, is_torch: bool = False
) -> list[Occurrence]:
    """The constructs of one network's construct, or of one function or method, and of its calls.

    is_torch: whether the file is torch code that will be converted.
    """
    return find_reached_in(FileScope(tree), cls, function, is_torch=is_torch)


def find_reached_in(
    file: FileScope, cls: str, function: str = "", *, is_torch: bool = False
) -> list[Occurrence]:
    """As `find_reached`, of a file that knows the others of its project."""
    index = _index(is_torch=is_torch)
    finder = functools.partial(_of_function, index=index)
    if cls in file.classes and is_executed_as_same(file, cls):
        return []
    roots = [CompiledFunction(cls, m) for e in _ENTRIES if (m := file.method(cls, e)) is not None]
    if function:
        root = file.method(cls, function) if cls else file.functions.get(function)
        roots = [CompiledFunction(cls, root)] if root is not None else []
    found: set[Occurrence] = set()
    for compiled in _reached(file, roots):
        found.update(_in_function(file, compiled, index))
        found.update(found_elsewhere(file, compiled.cls, compiled.node, finder))
    for rule in index.rules:
        for name, node in FILE_DETECTORS.get(rule.detector, _nothing)(file):
            if name == cls:
                found.add(_at(rule.code, node, "", name))
    return sorted(found, key=_order)


def functions_called(tree: ast.Module, cls: str, first: int, last: int) -> set[tuple[str, str]]:
    """The functions that these lines of a class's code reach within the file: class and name."""
    file = FileScope(tree)
    lines = ast.Module([], [])
    lines.body = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno >= first and (node.end_lineno or 0) <= last
    ]
    roots = list(_called(file, CompiledFunction(cls, lines)))  # type: ignore[arg-type]
    return {(c.cls, c.node.name) for c in _reached(file, roots)}


def _nothing(file: FileScope) -> Iterator[tuple[str, ast.AST]]:
    return iter(())


def _reached(file: FileScope, waiting: list[CompiledFunction]) -> list[CompiledFunction]:
    """Functions with all that they call within the file."""
    found: dict[int, CompiledFunction] = {}
    while waiting:
        compiled = waiting.pop()
        if id(compiled.node) in found:
            continue
        found[id(compiled.node)] = compiled
        waiting += _called(file, compiled)
    return sorted(found.values(), key=lambda c: c.node.lineno)


_JITS = ("mindspore.jit", "mindspore.ms_function")


def _target(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _called(file: FileScope, compiled: CompiledFunction) -> Iterator[CompiledFunction]:
    nodes = file.by_type(compiled.node)
    for attribute in nodes.get(ast.Attribute, ()):
        if is_self_attribute(attribute):
            method = file.method(compiled.cls, attribute.attr)
            if method is not None and not runs_outside(file, method):
                yield CompiledFunction(compiled.cls, method)
    for name in {node.id for node in nodes.get(ast.Name, ())} & file.functions.keys():
        function = file.functions[name]
        if not runs_outside(file, function):
            yield CompiledFunction("", function)


def _in_function(
    file: FileScope, compiled: CompiledFunction, index: _RuleIndex
) -> Iterator[Occurrence]:
    own = Locals(file, compiled.cls, compiled.node)
    unread = _never_run(own)
    for rule, node in _candidates(index, own):
        if id(node) not in unread and _fits(rule, node, own):
            yield _at(rule.code, node, compiled.node.name, compiled.cls)


@dataclass(frozen=True)
class _RuleIndex:
    """Rules by what they speak of, so that a function asks only those that its code may concern."""

    rules: tuple[Rule, ...]
    nodes: dict[type[ast.AST], list[Rule]]
    calls: dict[str, list[Rule]]
    calls_below: list[tuple[str, Rule]]
    methods: dict[str, list[Rule]]
    detectors: list[tuple[Callable[[Locals], Found], Rule]]


@functools.cache
def _index(is_torch: bool) -> _RuleIndex:
    """The rules of ports, or those that torch code is asked."""
    wanted = tuple(rule for rule in rules().values() if rule.in_torch or not is_torch)
    index = _RuleIndex(wanted, {}, {}, [], {}, [])
    for rule in wanted:
        for kind in rule.nodes:
            index.nodes.setdefault(getattr(ast, kind), []).append(rule)
        for name in rule.calls:
            if name.endswith("."):
                index.calls_below.append((name, rule))
            else:
                index.calls.setdefault(name, []).append(rule)
        for method in rule.methods:
            index.methods.setdefault(method, []).append(rule)
        if rule.detector in DETECTORS:
            index.detectors.append((DETECTORS[rule.detector], rule))
    return index


def _candidates(index: _RuleIndex, own: Locals) -> Iterator[tuple[Rule, ast.AST]]:
    """The nodes that each rule may speak of, from the function's index."""
    indexed: tuple[tuple[dict[Any, list[Rule]], Mapping[Any, list[Any]]], ...] = (
        (index.nodes, own.by_type),
        (index.calls, own.calls),
        (index.methods, own.methods),
    )
    for by_key, found in indexed:
        for key, asked in by_key.items():
            for node in found.get(key, ()):
                yield from ((rule, node) for rule in asked)
    for prefix, rule in index.calls_below:
        yield from ((rule, node) for node in own.calls_below(prefix))
    for detector, rule in index.detectors:
        for node in detector(own):
            yield rule, node


def _never_run(own: Locals) -> set[int]:
    """Annotations and what only makes the text of an error."""
    parts: list[ast.AST] = [
        *own.all(ast.Raise),
        *(node.msg for node in own.all(ast.Assert) if node.msg is not None),
        *(node.annotation for node in own.all(ast.arg) if node.annotation is not None),
    ]
    return {id(inner) for part in parts for inner in below(part)}


def _fits(rule: Rule, node: ast.AST, own: Locals) -> bool:
    if isinstance(node, ast.With) and rule.nodes:
        return not _is_jit_class(node, own)
    if not isinstance(node, ast.Call) or not (rule.calls or rule.methods):
        return True
    if rule.keyword and not any(k.arg == rule.keyword for k in node.keywords):
        return False
    is_method = bool(rule.methods) and isinstance(node.func, ast.Attribute)
    return not is_method or _is_of(rule.of, node.func, own)  # type: ignore[arg-type]


def _is_of(kind: str, function: ast.Attribute, own: Locals) -> bool:
    if kind == "any":
        return not own.file.qualified(function).startswith(("numpy.", "mindspore.", "torch."))
    if kind == "self":
        return is_self_attribute(function.value)
    return own.of(function.value) == {"list": LIST, "dict": DICT}[kind]


def _is_jit_class(node: ast.With, own: Locals) -> bool:
    for item in node.items:
        name = own.file.qualified(_target(item.context_expr)).rpartition(".")[2]
        scope = own.file.classes.get(name)
        if scope is None or "mindspore.jit_class" not in scope.decorators:
            return False
    return True


def _at(code: str, node: ast.AST, function: str, cls: str) -> Occurrence:
    line: int = getattr(node, "lineno", 0)
    end: int = getattr(node, "end_lineno", None) or line
    return Occurrence(code, line, end, getattr(node, "col_offset", 0), function, cls)
