"""Functions of a project's other files that a forward part calls."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping

from isograd.convert.file import FileEdit
from isograd.convert.training.effects import effect_in
from isograd.convert.training.index import Index
from isograd.convert.training.model import EagerError
from isograd.convert.training.paths import BUILTINS, calls_in
from isograd.convert.training.records import Imports
from isograd.static_graph.find import find_reached_in
from isograd.static_graph.rule import Occurrence
from isograd.static_graph.scope import FileScope


class OtherFiles:
    """Asks of one project: trees by the names of files; reading: a file by its name."""

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        imports: Imports,
        reading: Callable[[str], FileEdit | None],
    ) -> None:
        self._trees, self._imports, self._reading = trees, imports, reading
        self._files = {tree: name for name, tree in trees.items()}
        self._scopes: dict[str, FileScope] = {}

    def function(self, file: str, node: ast.AST) -> tuple[str, ast.FunctionDef] | None:
        """The function of another file that an expression names, with its file."""
        found = self._scope(file).elsewhere(node)
        function = None if found is None else found[0].functions.get(found[1])
        if found is None or function is None:
            return None
        return self._files[found[0].tree], function

    @functools.cached_property
    def index(self) -> Index:
        """What the project binds and calls."""
        return Index.of((name, tree) for name, tree in self._trees.items())

    def problem(self, file: str, function: ast.FunctionDef) -> str:
        """Why a function is no part of a static graph; empty where nothing is known of it."""
        own = self._reading(file)
        if function.decorator_list or own is None:
            return "is not looked into"
        found = find_reached_in(self._scope(file), "", function.name, is_torch=True)
        if found:
            return f"does not compile to the same: {place_of(found[0], self._trees[file])}"
        effect = effect_in(function, own)
        if effect is not None:
            return f"calls for an effect beside its value: line {effect.lineno}"
        return ""

    def is_called(
        self, file: str, function: ast.FunctionDef, part: ast.expr, call: ast.Call, is_network: bool
    ) -> bool:
        """Whether a function calls what a call gives to it; EagerError where that is not known."""
        names = [one.arg for one in function.args.args]
        by_name = next((one.arg for one in call.keywords if one.value is part), None)
        place = call.args.index(part) if by_name is None else 0
        if by_name is None and place >= len(names):
            raise EagerError(call, f"{function.name} is given more than it names")
        name = by_name or names[place]
        if any(getattr(inner.func, "id", "") == name for inner in calls_in(function.body)):
            return True
        if is_network or self._hands_on(file, function, name):
            raise EagerError(call, f"{function.name} hands on what it is given, {name}")
        return False

    def _hands_on(self, file: str, function: ast.FunctionDef, name: str) -> bool:
        """Whether it gives it to a function that is neither torch's nor Python's."""
        own = self._reading(file)
        return any(
            getattr(given, "id", "") == name
            for call in calls_in(function.body)
            if getattr(call.func, "id", "") not in BUILTINS
            if own is None or own.use(call.func) is None
            for given in (*call.args, *(keyword.value for keyword in call.keywords))
        )

    def _scope(self, file: str) -> FileScope:
        if file not in self._scopes:
            self._scopes[file] = FileScope(
                self._trees[file],
                lambda module: self._module(file, module),
                self._imports.package_of(file),
            )
        return self._scopes[file]

    def _module(self, file: str, module: str) -> FileScope | None:
        other = self._imports.file_of(file, module)
        return self._scope(other) if other in self._trees else None


def place_of(found: Occurrence, module: ast.Module) -> str:
    """The line of a construct with what is written there."""
    at = (found.line, found.column)
    said = next(
        (
            n
            for n in ast.walk(module)
            if (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)) == at
        ),
        None,
    )
    what = "" if said is None else ": " + ast.unparse(said).partition("\n")[0]
    return f"line {found.line} ({found.code}{what})"
