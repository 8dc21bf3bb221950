"""What compiled functions call in other files of the project, and what becomes of it there.

Of a copy of a runtime function that was executed its verdict counts; of other code the rules are
asked, in the file that holds it.  A class of another file with a construct is a network there, and
what the rules find in it stands at its own lines; here only its executed verdict is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from isograd.static_graph.executed import DEPENDS, SAME, Executed, executed_verdict
from isograd.static_graph.rule import Occurrence
from isograd.static_graph.scope import Definition, FileScope, is_self_attribute

#: The code of a runtime function whose execution showed a verdict; no rule has it.
RUNTIME_CALL = "runtime.call"
#: The functions that one reaches within its file: the class of each, its code, and the constructs
#: that the rules find in it.
Reached = list[tuple[str, ast.FunctionDef, list[Occurrence]]]
Finder = Callable[[FileScope, str], Reached]


#: Decorators of functions that run at compile time, as Python.
_OUTSIDE = ("constexpr", "_primexpr", "jit_ignore")


def runs_outside(file: FileScope, function: ast.FunctionDef) -> bool:
    """Whether a function runs at compile time, as Python."""
    targets = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return any(file.qualified(t).rpartition(".")[2] in _OUTSIDE for t in targets)


def calls_elsewhere(
    file: FileScope, cls: str, function: ast.AST
) -> Iterator[tuple[ast.AST, Definition]]:
    """The places of a function that run code of another file: the node, and what it runs."""
    nodes = file.by_type(function)
    for call in nodes.get(ast.Call, ()):
        found = file.elsewhere(call.func)
        if found is not None:
            yield call, found
        elif isinstance(call.func, ast.Attribute) and is_self_attribute(call.func):
            yield from _of_attribute(file, cls, call, call.func.attr)
        elif isinstance(call.func, ast.Attribute) and is_self_attribute(call.func.value):
            name: str = getattr(call.func.value, "attr", "")
            yield from _of_attribute(file, cls, call, name)
    for part in nodes.get(ast.Subscript, ()):
        if is_self_attribute(part.value):
            yield from _of_attribute(file, cls, part, part.value.attr)


def _of_attribute(
    file: FileScope, cls: str, node: ast.AST, name: str
) -> Iterator[tuple[ast.AST, Definition]]:
    """What `self.name` is made of, where another file defines it."""
    made = file.made(cls, name)
    if made is not None:
        found = file.elsewhere(made.func if isinstance(made, ast.Call) else made)
        if found is not None:
            yield node, found


def found_elsewhere(
    file: FileScope, cls: str, function: ast.FunctionDef, finder: Finder
) -> Iterator[Occurrence]:
    """The constructs that a function reaches in other files, at its own calls."""
    for node, (other, name) in calls_elsewhere(file, cls, function):
        for found in _in_definition(other, name, finder, frozenset()):
            yield found.seen_from(node, name, function.name, cls)


def _in_definition(
    file: FileScope, name: str, finder: Finder, above: frozenset[tuple[int, str]]
) -> list[Occurrence]:
    kept = file.kept_findings.get(name)
    if kept is not None:
        return kept
    executed = executed_verdict(file, name)
    if executed is not None and executed.verdict != DEPENDS:
        found = _of_executed(executed, file, name)
    elif (id(file), name) in above or name in file.classes:
        return []
    elif runs_outside(file, file.functions[name]):
        found = []
    else:
        found = _by_rules(file, name, finder, above | {(id(file), name)})
    file.kept_findings[name] = found
    return found


def _of_executed(executed: Executed, file: FileScope, name: str) -> list[Occurrence]:
    if executed.verdict == SAME:
        return []
    line = file.definition(name).lineno  # type: ignore[union-attr] # a function or class has one
    return [
        Occurrence(
            RUNTIME_CALL, line, line, 0, name, "", executed.name, executed.verdict, executed.detail
        )
    ]


def _by_rules(
    file: FileScope, name: str, finder: Finder, above: frozenset[tuple[int, str]]
) -> list[Occurrence]:
    found: list[Occurrence] = []
    for cls, function, own in finder(file, name):
        found += own
        for node, (other, inner) in calls_elsewhere(file, cls, function):
            further = _in_definition(other, inner, finder, above)
            found += [o.seen_from(node, inner, function.name, cls) for o in further]
    return found
