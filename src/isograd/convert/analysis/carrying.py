"""Which modules are handed to a module that is being built, and which classes of modules escape.

MindSpore's cells start in inference, torch's modules in training.  A module that its parent
registers while it is built gets the mode from there; any other one has to be set where it is made.
The answers are yes where every use of the value in the file shows it, and no otherwise: setting the
mode of a module that was just made is right everywhere, so a no costs a call and nothing else.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property

from isograd.convert.analysis.attributes import attribute_values
from isograd.convert.analysis.following import Walk, is_type
from isograd.convert.places import Place, place
from isograd.convert.tree import Tree

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONSTRUCTORS = ("__init__", "__post_init__")


@dataclass(frozen=True)
class Carrying:
    """Follows values through one file.

    api_of: the API of torch that a node names.  is_container: whether an API is a class of torch's
    modules.  is_module: whether a class is a module, or a base of one.  built: calls that make the
    project's modules.  is_taken: whether another file may call a function or method of this name.
    """

    tree: Tree
    api_of: Callable[[ast.AST], str]
    is_container: Callable[[str], bool]
    is_module: Callable[[ast.ClassDef], bool]
    built: Container[Place]
    is_taken: Callable[[str], bool]

    def is_carried(self, call: ast.expr) -> bool:
        """Whether a module that an expression makes gets its mode from the module around it."""
        return Walk(self).carries(call)

    def is_kept_inside(self, reference: ast.expr) -> bool:
        """Whether a class, where it is named, is called for parts of modules alone, or not."""
        return Walk(self).is_inside(reference)

    def is_type(self, reference: ast.expr) -> bool:
        """Whether a class is named as a type: a base, an annotation, a test, or for its members."""
        return is_type(reference, self.tree.parents.get(reference), self.tree)

    # ---- what holds for the file

    @cached_property
    def loads(self) -> dict[str, list[ast.Name]]:
        """Where each name is read."""
        found: dict[str, list[ast.Name]] = defaultdict(list)
        for node in self.tree.of(ast.Name):
            if isinstance(node.ctx, ast.Load):
                found[node.id].append(node)
        return found

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """Where an attribute of each name is read."""
        found: dict[str, list[ast.Attribute]] = defaultdict(list)
        for node in self.tree.of(ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                found[node.attr].append(node)
        return found

    @cached_property
    def values(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        """What is assigned to attributes, by their classes."""
        return attribute_values(self.tree)

    @cached_property
    def functions(self) -> dict[str, list[_Function]]:
        """The functions and methods of the file by their names."""
        found: dict[str, list[_Function]] = defaultdict(list)
        for node in self.tree.of(ast.FunctionDef, ast.AsyncFunctionDef):
            assert isinstance(node, _Function)
            found[node.name].append(node)
        return found

    @cached_property
    def building(self) -> frozenset[_Function]:
        """The constructors of modules, and methods that nothing but these calls."""
        found = {
            one
            for functions in self.functions.values()
            for one in functions
            if (owner := self.owner(one)) is not None and self.is_module(owner)
        }
        while True:
            out = {one for one in found if not self._only_builds(one, found)}
            if not out:
                return frozenset(found)
            found -= out

    def _only_builds(self, method: _Function, building: set[_Function]) -> bool:
        if method.name in _CONSTRUCTORS:
            return True
        reads = self.attributes.get(method.name, [])
        if not reads or self.is_taken(method.name):
            return False
        return all(self.is_self(read.value) and self.function(read) in building for read in reads)

    def function(self, node: ast.AST) -> _Function | None:
        return self.tree.function(node)

    def owner(self, function: ast.AST | None) -> ast.ClassDef | None:
        """The class whose method a function is."""
        parent = None if function is None else self.tree.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def is_self(self, node: ast.AST) -> bool:
        """Whether a name is the first parameter of the method that it stands in."""
        function = self.function(node)
        if function is None or self.owner(function) is None or not isinstance(node, ast.Name):
            return False
        decorators = {getattr(part, "id", "") for part in function.decorator_list}
        if decorators & {"staticmethod", "classmethod"}:
            return False
        given = [*function.args.posonlyargs, *function.args.args]
        return bool(given) and given[0].arg == node.id

    def is_builder(self, node: ast.AST) -> bool:
        """Whether a node runs while a module is built that is not used before it is complete."""
        function = self.function(node)
        owner = self.owner(function)
        return function in self.building and owner is not None and owner not in self._running

    @cached_property
    def _running(self) -> frozenset[ast.ClassDef]:
        """Classes that call their own parts while they are built, in torch's starting mode."""
        found = set()
        for call in self.tree.of(ast.Call):
            function = self.function(call)
            owner = self.owner(function)
            if owner is not None and function in self.building and self._runs(call, owner):
                found.add(owner)
        return frozenset(found)

    def _runs(self, call: ast.Call, owner: ast.ClassDef) -> bool:
        called = call.func
        if self.is_self(called):
            return True
        if isinstance(called, ast.Attribute) and self.is_self(called.value):
            return (owner, called.attr) in self.values or called.attr == "forward"
        if isinstance(called, ast.Subscript):
            return True
        loop = self.tree.loop(called) if isinstance(called, ast.Name) else None
        return loop is not None and any(self.is_self(part) for part in ast.walk(loop.iter))

    def reads_in(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Where a variable of a function, or of the module, is read."""
        if isinstance(scope, ast.Module):
            return [one for one in self.loads.get(name, []) if not self.tree.binds(name, one)]
        return [one for one in self.loads.get(name, []) if scope in self.tree.above(one)]

    def is_module_call(self, call: ast.Call) -> bool:
        """Whether a call makes a module of torch's or of the project."""
        return place(call) in self.built or self.is_container(self.api_of(call.func))
