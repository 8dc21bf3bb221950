"""What of a project draws random numbers: computed again, it would be something else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.convert.facts import Facts
from isograd.convert.places import place
from isograd.convert.training.paths import path_of
from isograd.knowledge.entry import Entry
from isograd.static_graph.scope import FileScope

_STARTING = "torch.nn.init."
_SHARES = ("dropout", "dropout_p")
#: Modules of Python and numpy that a compiled step would ask once.
_OTHERS = ("numpy.random.", "random.")
_Definition = ast.ClassDef | ast.FunctionDef


def drawing_apis(entries: Iterable[Entry]) -> dict[str, tuple[str, int] | None]:
    """APIs that draw, by all their names; those that do by an argument, with its name and place."""
    found: dict[str, tuple[str, int] | None] = {}
    for entry in entries:
        if entry.api.startswith(_STARTING):
            continue
        share = _share(entry.signature)
        if entry.is_random or share:
            found |= dict.fromkeys((entry.api, *entry.aliases), None if entry.is_random else share)
    return found


def _share(signature: str) -> tuple[str, int] | None:
    """The name and the place of an argument that says how much is dropped."""
    if not any(name in signature for name in _SHARES):
        return None
    try:
        function = ast.parse(f"def f{signature}: pass").body[0]
    except SyntaxError:
        return None
    assert isinstance(function, ast.FunctionDef)
    given = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    every = [*given, *(part.arg for part in function.args.kwonlyargs)]
    name = next((one for one in _SHARES if one in every), "")
    if not name:
        return None
    has_default = any(
        isinstance(node, ast.Constant) and node.value
        for own, node in zip(reversed(given), reversed(function.args.defaults), strict=False)
        if own == name
    )
    # With a share by default all calls may draw.
    return name, -1 if has_default else given.index(name) if name in given else len(given)


@dataclass
class Draws:
    """Asks of one project.

    files: trees and facts by name.  drawing: as `drawing_apis`.  asks_python: whether numpy's and
    Python's generators draw, too.
    """

    files: Mapping[str, tuple[ast.Module, Facts]]
    drawing: Mapping[str, tuple[str, int] | None]
    asks_python: bool = True
    _scopes: dict[str, FileScope] = field(default_factory=dict)
    _defined: dict[str, list[tuple[str, _Definition]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (tree, _) in self.files.items():
            self._scopes[name] = FileScope(tree)
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self._defined.setdefault(node.name, []).append((name, node))

    def first(
        self, file: str, statements: Iterable[ast.stmt], paths: Iterable[str]
    ) -> ast.AST | None:
        """What may draw when statements are computed that call the objects at these paths."""
        begin: list[tuple[str, ast.AST]] = [(file, s) for s in statements]
        for path in paths:
            made = self._made(file, path, set())
            begin += self._everything() if made is None else [(file, one) for one in made]
        for where, node in self._reached(begin):
            if self._draws(where, node):
                return node
        return None

    def _everything(self) -> Iterator[tuple[str, ast.AST]]:
        """All networks, where it is not known which one is called, and all layers that draw."""
        for name, (tree, _) in self.files.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and "forward" in _methods(node):
                    yield name, node
                elif isinstance(node, ast.Call):
                    api = self._scopes[name].qualified(node.func)
                    if api in self.drawing and _is_class(api):
                        yield name, node

    def _made(self, file: str, path: str, seen: set[str]) -> list[ast.AST] | None:
        """The expressions that an object is made of; None where they are not known."""
        if path in seen:
            return []
        seen.add(path)
        values = [
            node.value
            for node in ast.walk(self.files[file][0])
            if isinstance(node, ast.Assign)
            and any(path_of(part) == path for target in node.targets for part in ast.walk(target))
        ]
        is_bound = any(part.arg == path for part in _arguments(self.files[file][0]))
        if not values or is_bound:
            return None
        found: list[ast.AST] = [*values]
        for value in values:
            for name in _names(value):
                if name in self._defined or self._scopes[file].qualified(_name(name)):
                    continue
                inner = self._made(file, name, seen)
                if inner is None:
                    return None
                found += inner
        return found

    def _reached(self, begin: list[tuple[str, ast.AST]]) -> Iterator[tuple[str, ast.AST]]:
        """All nodes of these, and of the functions and classes that they name."""
        waiting, seen = [*begin], set[ast.AST]()
        while waiting:
            file, top = waiting.pop()
            if top in seen:
                continue
            seen.add(top)
            starting = {
                node
                for part in ast.walk(top)
                if isinstance(part, ast.FunctionDef) and part.name == "__init__"
                for node in ast.walk(part)
            }
            for node in ast.walk(top):
                if node in starting and not _is_class(self._api(file, node)):
                    waiting += self._named(node)
                    continue
                yield file, node
                waiting += self._named(node)

    def _named(self, node: ast.AST) -> list[tuple[str, _Definition]]:
        if isinstance(node, ast.Name):
            return self._defined.get(node.id, [])
        is_of_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if is_of_module and node.value.id != "self":  # type: ignore[attr-defined] # a name
            return self._defined.get(node.attr, [])  # type: ignore[attr-defined] # an attribute
        return []

    def _api(self, file: str, node: ast.AST) -> str:
        if isinstance(node, ast.Call):
            return self._api(file, node.func)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ""
        member = self.files[file][1].members.get(place(node))
        return self._scopes[file].qualified(node) if member is None else member.api

    def _draws(self, file: str, node: ast.AST) -> bool:
        api = self._api(file, node)
        if not api:
            return False
        if api.startswith(_OTHERS):
            return self.asks_python
        if api not in self.drawing:
            return False
        rule = self.drawing[api]
        if rule is None:
            return True
        name, at = rule
        given = [part.arg for part in node.keywords] if isinstance(node, ast.Call) else []
        return isinstance(node, ast.Call) and (len(node.args) > at or name in given)


def _is_class(api: str) -> bool:
    return api.rpartition(".")[2][:1].isupper()


def _methods(node: ast.ClassDef) -> set[str]:
    return {part.name for part in node.body if isinstance(part, ast.FunctionDef)}


def _arguments(tree: ast.AST) -> Iterator[ast.arg]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.arg))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _names(value: ast.expr) -> set[str]:
    """The names that may be networks: those called, and those given as they are."""
    roots = {node.func for node in ast.walk(value) if isinstance(node, ast.Call)}
    given = {part for node in ast.walk(value) if isinstance(node, ast.Call) for part in node.args}
    given |= {k.value for n in ast.walk(value) if isinstance(n, ast.Call) for k in n.keywords}
    return {node.id for node in {*roots, *given, value} if isinstance(node, ast.Name)}
