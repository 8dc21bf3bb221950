"""Finds what of torch a compiled step would run and the static graph was seen not to take."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from isograd.convert.facts import Facts
from isograd.convert.places import place
from isograd.knowledge.entry import Entry
from isograd.static_graph.executed import SAME, verdict_of
from isograd.static_graph.find import compiled_functions, functions_called
from isograd.static_graph.scope import FileScope

_RUNTIME = re.compile(r"\bcomposites\.(\w+)")
#: A layer runs in the step, wherever it is made; a Parameter or a list of them does not run.
_LAYER = re.compile(r"torch\.nn\.(?!Parameter)[A-Z]\w*")
_REFUSED = "refused"


def refused_by_graph(entries: Iterable[Entry]) -> dict[str, str]:
    """What the static graph makes of APIs of which it takes no executed example, by any name."""
    found: dict[str, str] = {}
    for entry in entries:
        if reason := _reason(entry):
            found |= dict.fromkeys((entry.api, *entry.aliases), reason)
    return found


def _reason(entry: Entry) -> str:
    own = entry.verified.compiled if entry.verified is not None else ""
    if own.startswith("differs"):
        return "has other values or no gradient in the static graph"
    functions = [] if own == SAME else map(verdict_of, _RUNTIME.findall(entry.rewrite))
    # That a class loses gradients is said of the object as a graph's result, which no step has.
    is_refused = any(one is not None and one.verdict == _REFUSED for one in functions)
    return "is refused by the static graph" if is_refused or own.startswith(_REFUSED) else ""


def in_compiled_code(
    tree: ast.Module,
    facts: Facts,
    loops: Sequence[tuple[str, Sequence[ast.stmt]]],
    refused: Mapping[str, str],
) -> Iterator[tuple[ast.AST, str]]:
    """Uses of these APIs in networks, in the forward parts of loops and in what those call.

    loops: the class that holds each loop, empty for none, with its forward part.
    """
    scope = FileScope(tree)
    bodies: list[ast.AST] = [compiled.node for compiled in compiled_functions(scope)]
    for cls, statements in loops:
        bodies += statements
        called = functions_called(
            tree, cls, statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
        )
        methods = (scope.method(owner, name) for owner, name in called if owner)
        plain = (scope.functions.get(name) for owner, name in called if not owner)
        bodies += [function for function in (*methods, *plain) if function is not None]
    for body in bodies:
        for node in ast.walk(body):
            if (api := _api_of(node, scope, facts)) in refused:
                yield node, f"{api} {refused[api]}"
    for node in ast.walk(tree):
        api = _api_of(node, scope, facts)
        if api in refused and _LAYER.fullmatch(api):
            yield node, f"{api} {refused[api]}"


def _api_of(node: ast.AST, scope: FileScope, facts: Facts) -> str:
    """The API that a call calls, or an attribute of a tensor reads; empty where there is none."""
    if isinstance(node, ast.Call):
        return scope.qualified(node.func)
    member = facts.members.get(place(node)) if isinstance(node, ast.Attribute) else None
    return "" if member is None else member.api
