"""Calls of Python's that a compiled step would make once, when it is compiled.

rng = np.random.default_rng(0)
noise = lambda x: torch.from_numpy(rng.normal(size=x.shape))

A compiler runs `noise(x)` as Python and takes the numbers for constants: all rounds would have the
same ones.  What a name holds is found by what the project binds to it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from isograd.convert.analysis.changed_lists import changes_of
from isograd.convert.file import FileEdit
from isograd.convert.training.callers import Callers
from isograd.convert.training.changes import OF_CONTAINERS
from isograd.convert.training.index import Index, last_name
from isograd.convert.training.paths import root_of
from isograd.convert.training.reaching_values import (
    SCOPES,
    ReachingValues,
    own_nodes,
    parameters_of,
)
from isograd.static_graph.scope import FileScope

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Functions and classes whose answers, or whose objects' answers, are others each time.
_CHANGING = (
    *("random.", "numpy.random.", "scipy.stats.", "secrets.", "uuid.", "time.", "itertools."),
    "queue.",
)
_TAKING = ("pop", "popitem", "popleft")
_COPIES = ("copy.copy", "copy.deepcopy", "functools.partial")


@dataclass(frozen=True)
class Asked:
    """A call that a step would make once, or what it calls, with the reason."""

    node: ast.AST
    reason: str


@dataclass(frozen=True)
class _Object:
    """What the call of a class has made."""

    made_by: ast.ClassDef


#: What a value may be: a function, a class or its object, or the API that has made it.
_Held = _Function | ast.ClassDef | _Object | str


@dataclass
class AskedOnce:
    """Asks of one project.  reading: what is known of a file, by its name."""

    index: Index
    reading: Callable[[str], FileEdit | None]
    _scopes: dict[ast.AST, FileScope] = field(default_factory=dict)
    _edits: dict[ast.AST, FileEdit | None] = field(default_factory=dict)
    _changes: dict[ast.AST, set[ast.Call]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bound, self._callers = ReachingValues(self.index), Callers(self.index)

    def first(
        self, nodes: Iterable[ast.AST], without: Collection[ast.AST] = frozenset()
    ) -> Asked | None:
        """The first such call in these, or in the functions that they call.

        without: nodes that are computed outside.
        """
        waiting, seen = deque(nodes), set[ast.AST]()
        while waiting:
            top = waiting.popleft()
            for node in ast.walk(top):
                if node in without or not isinstance(node, ast.Call):
                    continue
                for held in self._run_by(node):
                    if isinstance(held, str):
                        return Asked(node, f"{held} runs in Python")
                    if not isinstance(held, _FUNCTIONS) or held in seen:
                        continue
                    if reason := self._reason(held):
                        return Asked(node, reason)
                    seen.add(held)
                    waiting.append(held)
        return None

    def _reason(self, function: _Function) -> str:
        """Why a function itself cannot be part of a graph."""
        if isinstance(function, ast.Lambda):
            is_found = self._is_a_statements_value(function)
            return "" if is_found else f"the compiler finds no text of {ast.unparse(function)}"
        changed = self._changes_outside(function)
        if changed is None:
            return ""
        return f"{function.name} changes what it keeps: line {getattr(changed, 'lineno', 0)}"

    def _is_a_statements_value(self, function: ast.Lambda) -> bool:
        """Whether a lambda's lines are a statement, whose value it is, or the lambda alone.

        MindSpore 2.10 parses the text from the first line of the lambda on.
        """
        statement = self.index.parents[function]
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return False
        if function.lineno > statement.lineno:
            return function.lineno == function.end_lineno != statement.end_lineno
        around = self.index.parents[statement]
        beside = [around, *ast.iter_child_nodes(around)]
        starts = [
            one.lineno if one is around else one.end_lineno
            for one in beside
            if isinstance(one, ast.stmt) and one is not statement
        ]
        return statement.lineno not in starts

    def _changes_outside(self, function: ast.AST) -> ast.AST | None:
        """Where a function writes to a list or an object of the functions around it."""
        around = {
            name
            for scope in self.index.above(function)
            if isinstance(scope, _FUNCTIONS)
            for name in (*parameters_of(scope), *self._stored_in(scope))
        } - {*parameters_of(function), *self._stored_in(function)}
        for node in ast.walk(function):
            is_written = isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(
                node.ctx, ast.Load
            )
            method = node.func if isinstance(node, ast.Call) else None
            is_written |= isinstance(method, ast.Attribute) and method.attr in OF_CONTAINERS
            root = root_of(node) if is_written else None
            if root is not None and root.id in around:
                return node
        return None

    def _stored_in(self, scope: ast.AST) -> set[str]:
        return {
            node.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and self._bound.scope(node) is scope
        }

    # ---- what a call runs

    def _run_by(self, call: ast.Call) -> Iterator[_Held]:
        """Functions of the project that a call runs, and APIs that answer otherwise each time."""
        function = call.func
        if self._is_of_torch(function):
            return
        api = self._api(function)
        if api.startswith(_CHANGING):
            yield api
        elif isinstance(function, ast.Name) and not api and self._is_next(call):
            yield f"next of {ast.unparse(call.args[0])}"
        if isinstance(function, ast.Attribute):
            if function.attr in _TAKING and not self._is_written_anew(call):
                yield f"{function.attr} takes an element away and"
            yield from self._methods(function)
            return
        for held in self._held(function, set()):
            if isinstance(held, _Object):
                yield from _named(held.made_by, "__call__")
            elif not isinstance(held, ast.ClassDef):
                yield held

    def _is_written_anew(self, call: ast.Call) -> bool:
        """Whether a port binds what is left to the list's name."""
        around = self._bound.scope(call)
        if not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if around not in self._changes:
            self._changes[around] = {change.call for change in changes_of(around)}
        return call in self._changes[around]

    def _methods(self, function: ast.Attribute) -> Iterator[_Held]:
        for held in self._held(function.value, set()):
            if isinstance(held, str):
                yield held
            elif isinstance(held, (_Object, ast.ClassDef)):
                own = held.made_by if isinstance(held, _Object) else held
                yield from _named(own, function.attr)
        yield from (
            held
            for value in self.index.of_attributes.get(function.attr, ())
            for held in self._held(value, set())
            if isinstance(held, (ast.Lambda, str))
        )

    def _is_next(self, call: ast.Call) -> bool:
        name = getattr(call.func, "id", "")
        given = call.args[0] if call.args else None
        is_pythons = name == "next" and not self._is_bound(call.func)
        return is_pythons and given is not None and last_name_called(given) != "parameters"

    def _is_bound(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and any(self._of_scopes(node))

    # ---- what a value may be

    def _held(self, node: ast.AST, seen: set[ast.AST]) -> Iterator[_Held]:
        if node in seen:
            return
        seen.add(node)
        if isinstance(node, ast.Lambda):
            yield node
        elif isinstance(node, ast.Name):
            yield from self._of_name(node, seen)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(node, seen)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, seen)
        elif isinstance(node, (ast.IfExp, ast.BoolOp, ast.Dict, ast.List, ast.Tuple)):
            inner = node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node)
            for part in inner:
                yield from self._held(part, seen)
        elif isinstance(node, ast.Subscript):
            yield from self._held(node.value, seen)

    def _of_name(self, node: ast.Name, seen: set[ast.AST]) -> Iterator[_Held]:
        for value in (values := [*self._of_scopes(node)]):
            if isinstance(value, ast.FunctionDef):
                yield value
            else:
                yield from self._held(value, seen)
        own = self._object_of(node)
        if own is not None:
            yield _Object(own)
        if values or self._is_parameter(node):
            return
        yield from (f for f in self.index.functions.get(node.id, ()) if not self.index.owner(f))
        yield from self.index.classes.get(node.id, ())

    def _object_of(self, node: ast.Name) -> ast.ClassDef | None:
        """The class of a method whose own object a name is."""
        for scope in self.index.above(node):
            if isinstance(scope, ast.FunctionDef) and node.id in parameters_of(scope):
                is_first = parameters_of(scope)[0] == node.id
                return self.index.owner(scope) if is_first else None
        return None

    def _is_parameter(self, node: ast.Name) -> bool:
        return any(node.id in parameters_of(s) for s in self.index.above(node) if is_scope(s))

    def _of_scopes(self, node: ast.Name) -> Iterator[ast.expr | ast.FunctionDef]:
        """What the innermost scope binds to a name, or calls give to a parameter."""
        for scope in filter(is_scope, self.index.above(node)):
            found: list[ast.expr | ast.FunctionDef] = []
            found += (value for _, value in self._bound.bindings(node.id, scope))
            if isinstance(scope, _FUNCTIONS):
                inner = (f for f in own_nodes(scope) if isinstance(f, ast.FunctionDef))
                found += (f for f in inner if f.name == node.id)
            yield from found
            is_given = node.id in parameters_of(scope)
            if is_given and isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for call in self._callers.calls(scope):
                    yield from self._callers.given(call, scope, node.id)
            if found or is_given:
                return

    def _of_attribute(self, node: ast.Attribute, seen: set[ast.AST]) -> Iterator[_Held]:
        if self._is_of_torch(node) or self._api(node):
            return
        for value in self.index.of_attributes.get(node.attr, ()):
            yield from self._held(value, seen)
        for held in self._held(node.value, seen):
            if isinstance(held, str):
                yield held
            elif isinstance(held, (_Object, ast.ClassDef)):
                yield from _named(held.made_by if isinstance(held, _Object) else held, node.attr)

    def _of_call(self, node: ast.Call, seen: set[ast.AST]) -> Iterator[_Held]:
        """What a call has made: an object of a class, what a function returns, or Python's own."""
        if self._is_of_torch(node.func):
            return
        api = self._api(node.func)
        if api in _COPIES and node.args:
            yield from self._held(node.args[0], seen)
            return
        if api:
            yield from [api] if api.startswith(_CHANGING) else []
            return
        for held in self._held(node.func, seen):
            if isinstance(held, ast.ClassDef):
                yield _Object(held)
            elif isinstance(held, str):
                continue  # a value that a generator or an object of Python's has returned
            elif isinstance(held, ast.Lambda):
                yield from self._held(held.body, seen)
            elif not isinstance(held, _Object):
                for part in ast.walk(held):
                    if isinstance(part, ast.Return) and part.value is not None:
                        yield from self._held(part.value, seen)

    # ---- APIs

    def _module(self, node: ast.AST) -> ast.AST:
        *_, module = self.index.above(node)
        return module

    def _api(self, node: ast.AST) -> str:
        """The dotted name of what is imported and none of the project's files; else empty."""
        root = root_of(node)
        if root is None or isinstance(node, ast.Call) or self._is_bound(root):
            return ""
        module = self._module(node)
        if module not in self._scopes:
            assert isinstance(module, ast.Module)
            self._scopes[module] = FileScope(module)
        scope = self._scopes[module]
        return scope.qualified(node) if root.id in scope.imports else ""

    def _is_of_torch(self, node: ast.AST) -> bool:
        module = self._module(node)
        if module not in self._edits:
            self._edits[module] = self.reading(self.index.files[module])
        edit = self._edits[module]
        use = None if edit is None else edit.use(node)
        return use is not None and use.api.startswith("torch.")


def is_scope(node: ast.AST) -> bool:
    """Whether names are bound in a node of their own."""
    return isinstance(node, SCOPES)


def last_name_called(node: ast.AST) -> str:
    """The last name of what a call calls; empty for anything else."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _named(own: ast.ClassDef, name: str) -> Iterator[ast.FunctionDef]:
    """The method of a class."""
    yield from (f for f in own.body if isinstance(f, ast.FunctionDef) and f.name == name)
