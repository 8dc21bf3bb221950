"""What the statements of a function or of a module bind its names to."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from isograd.convert.data_aliases import owner_of
from isograd.convert.held_results import gives_held, gives_several_held, reach_of_held
from isograd.convert.indexes import has_inner_steps
from isograd.convert.origins import (
    SEVERAL,
    Binding,
    Origin,
    Reach,
    adds_axis,
    called,
    origin_of_write,
    unrepeated,
)
from isograd.convert.tree import Tree, defaults_of, names_of, pairs_of

ScopeNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_LISTING = ("dict", "list", "OrderedDict", "sorted", "tuple")
_OF_DICTIONARIES = ("keys", "values", "items", "get", "pop", "update", "setdefault")
#: What gives the elements of what it is given, one by one or in a list.
_GIVING = ("list", "tuple", "sorted", "reversed", "set", "iter", "zip", "enumerate")
_BRACKETS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.DictComp)


class Bindings:
    """What the statements of one function, or of a module, bind its names to.

    The bodies of classes belong to the scope around them: they run in its order.
    held: expressions `x.data` that a port writes as x.
    """

    def __init__(
        self,
        node: ScopeNode,
        tree: Tree,
        named: Mapping[ast.AST, str],
        held: Collection[ast.AST] = (),
    ) -> None:
        self.node = node
        self._tree = tree
        self._named = named
        self._held = held
        self.parameters: dict[str, ast.arg] = {}
        if not isinstance(node, ast.Module):
            given = node.args
            several = (*given.posonlyargs, *given.args, *given.kwonlyargs)
            self.parameters = {part.arg: part for part in several}

    def values_of(self, name: str) -> list[ast.expr]:
        """What assignments bind to a name, one to one."""
        return self._values.get(name, [])

    def is_container(self, name: str) -> bool:
        """Whether a name is bound to a list, a tuple or a dictionary that is written out."""
        return any(self._lists(value, name) for value in self.values_of(name))

    def _lists(self, value: ast.expr, name: str) -> bool:
        """Whether a value of a name is a list; `held[1:]` is one where held is."""
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            held = getattr(value.value, "id", name)
            return held != name and self.is_container(held)
        if isinstance(value, ast.Call):
            return getattr(value.func, "id", "") in _LISTING
        return isinstance(unrepeated(value), _BRACKETS)

    def is_mapping(self, name: str) -> bool:
        """Whether all values of a name are dictionaries, whose loop goes through keys."""
        values = self.values_of(name)
        return name not in self.parameters and bool(values) and all(map(_is_mapping, values))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of the scope, without those inside of inner functions."""
        found: list[ast.AST] = []
        nodes: list[ast.AST] = list(self.node.body)
        while nodes:
            node = nodes.pop()
            found.append(node)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                nodes.extend(self._tree.children.get(node, ()))
        return found

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for one, value in pairs_of(target, node.value):
                        is_its_own = one is target or value is not node.value
                        if isinstance(one, ast.Name) and is_its_own:
                            found.setdefault(one.id, []).append(value)
        return found

    @cached_property
    def _dictionaries(self) -> frozenset[str]:
        """The names that are used as only dictionaries are: `key in d`, `d.items()`, `del d[k]`."""
        found: list[ast.expr] = []
        for node in self.nodes:
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                found += node.comparators
            elif isinstance(node, ast.Delete):
                found += [one.value for one in node.targets if isinstance(one, ast.Subscript)]
            elif isinstance(node, ast.Attribute) and node.attr in _OF_DICTIONARIES:
                found.append(node.value)
        return frozenset(node.id for node in found if isinstance(node, ast.Name))

    @cached_property
    def _bindings(self) -> list[Binding]:
        return [binding for node in self.nodes for binding in self._bound_by(node)]

    @cached_property
    def _bindings_by_name(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for binding in self._bindings:
            found.setdefault(binding.name, []).append(binding)
        return found

    def bindings_of(self, name: str) -> list[Binding]:
        """All that binds a name, or puts something into what it holds."""
        return self._bindings_by_name.get(name, [])

    def _bound_by(self, node: ast.AST) -> Iterator[Binding]:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from self._bound(target, node.value, node)
            yield from self._together(node)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from self._bound(node.target, node.value, node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self._through(node.target, node.iter, node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    for name in names_of(item.optional_vars):
                        yield Binding(node, name, ())
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Binding(node, node.name, self._inside(defaults_of(node).values()))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr in ("append", "insert", "extend") and isinstance(owner, ast.Name):
                yield Binding(node, owner.id, self._inside(node.args[-1:]))

    def _together(self, node: ast.Assign) -> Iterator[Binding]:
        """Names that are bound beside others: `a = b = f(x)`, `buffer = state["buffer"] = f(x)`."""
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        for one, other in itertools.permutations(names, 2):
            yield Binding(node, one, (Origin(Reach.SHARED, other),))
        if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            for name in names:
                yield Binding(node, name, (Origin(Reach.SHARED, None),))

    def _bound(self, target: ast.expr, value: ast.expr, node: ast.AST) -> Iterator[Binding]:
        if isinstance(target, ast.Name):
            yield Binding(node, target.id, self.origins_of(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, one in zip(target.elts, value.elts, strict=True):
                    for binding in self._bound(part, one, node):
                        yield replace(binding, value=binding.value or one)
                return
            origins = self._of_several(value)
            for name in names_of(target):
                yield Binding(node, name, origins)
        elif isinstance(target, ast.Attribute):
            for origin in self.origins_of(value):
                if origin.root is not None:
                    yield Binding(node, ast.unparse(target), (origin,))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if self.is_container(target.value.id):
                yield Binding(node, target.value.id, self.origins_of(value))

    def _through(self, target: ast.expr, source: ast.expr, node: ast.AST) -> Iterator[Binding]:
        """A loop's names: elements of what it goes through, or rows taken by numbers."""
        pairs = list(parted(target, source))
        if pairs != [(target, source)]:
            for one, of in pairs:
                yield from self._through(one, of, node)
            return
        origins: tuple[Origin, ...] = (Origin(Reach.SHARED, None),)
        if _is_mapping(source) or (isinstance(source, ast.Name) and self.is_mapping(source.id)):
            origins = ()
        elif isinstance(source, ast.Name):
            is_listed = self.is_container(source.id)
            origins = (Origin(Reach.SHARED if is_listed else Reach.SLICE, source.id),)
        elif isinstance(target, ast.Name):
            origins = self._of_several(source) or origins
        for name in names_of(target):
            yield Binding(node, name, origins)

    def _of_several(self, value: ast.expr) -> tuple[Origin, ...]:
        if rows := self._rows(value):
            return rows
        if isinstance(value, _BRACKETS):
            return self._inside(ast.iter_child_nodes(value))
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            return self._of_several(value.value)
        if isinstance(value, ast.Call) and called(value, self._named)[0] in SEVERAL:
            return self.origins_of(value)
        if gives_several_held(value, self._tree, self._named):
            return (Origin(Reach.SHARED, None),)
        if isinstance(value, ast.IfExp):
            return (*self._of_several(value.body), *self._of_several(value.orelse))
        if isinstance(value, ast.Name):
            is_listed = self.is_container(value.id)
            return (Origin(Reach.SHARED if is_listed else Reach.SLICE, value.id),)
        if isinstance(value, ast.Subscript):
            return (Origin(Reach.SHARED, None),)
        if isinstance(value, (ast.Attribute, ast.Call)):  # `a, b = x.T`
            return tuple(origin for origin in self.origins_of(value) if origin.reach is Reach.LOST)
        return ()

    def _rows(self, value: ast.expr) -> tuple[Origin, ...]:
        """Elements of what may be a tensor: of `list(x)`, `[*x]` and `[row for row in x]`."""
        sources: list[tuple[Reach, ast.expr]] = []
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") in _GIVING:
            sources = [(Reach.SLICE, part) for part in value.args]
        elif isinstance(value, ast.Starred):
            sources = [(Reach.SLICE, value.value)]
        elif isinstance(value, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            made = value.value if isinstance(value, ast.DictComp) else value.elt
            root, reach = origin_of_write(made, self._named)
            sources = [
                (max(reach, Reach.SLICE), source)
                for loop in value.generators
                for target, source in parted(loop.target, loop.iter)
                if getattr(root, "id", "") in names_of(target)
            ]
        found: list[Origin] = []
        for reach, source in sources:
            root, here = origin_of_write(source, self._named)
            if isinstance(root, ast.Name):
                if self.is_container(root.id):
                    found.append(Origin(Reach.SHARED, root.id))
                elif not self.is_mapping(root.id) and root.id not in self._dictionaries:
                    found.append(Origin(max(here, reach), root.id))
            found += [origin for origin in self._rows(source) if origin.root is not None]
        return (Origin(Reach.SHARED, None), *found) if found else ()

    def _inside(self, parts: Iterable[ast.AST]) -> tuple[Origin, ...]:
        found: list[Origin] = []
        for part in parts:
            if isinstance(part, ast.expr):
                found += self.origins_of(part)
        return tuple(found)

    def origins_of(self, value: ast.expr) -> tuple[Origin, ...]:
        """What a value is one with, by the names of the scope."""
        if isinstance(value, ast.Name):
            return (Origin(Reach.SHARED, value.id),)
        if isinstance(value, (ast.IfExp, ast.BoolOp, ast.NamedExpr)):
            return self._inside(alternatives(value))
        if value in self._held:
            owner = owner_of(value)
            assert owner is not None
            return self.origins_of(owner)
        value = unrepeated(value)
        if rows := self._rows(value):
            return rows
        if isinstance(value, _BRACKETS):
            return self._inside(ast.iter_child_nodes(value))
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "numpy":
            shared = self.origins_of(value.func.value)  # type: ignore[attr-defined]  # a method
            return tuple(replace(o, reach=Reach.LOST, is_array=True) for o in shared if o.root)
        if self._named.get(getattr(value, "func", value)) == "torch.from_numpy":
            of_array = self._inside(value.args)  # type: ignore[attr-defined]  # a call
            return tuple(replace(o, reach=Reach.LOST, is_of_array=True) for o in of_array if o.root)
        root, reach = origin_of_write(value, self._named)
        is_copied = isinstance(value, ast.Subscript) and has_inner_steps(value.slice)
        if is_copied or (isinstance(value, ast.Subscript) and adds_axis(value.slice)):
            reach = Reach.LOST
        if isinstance(root, ast.Attribute) or gives_held(root, self._tree, self._named):
            held = reach_of_held(root, self._tree, self._named)
            return (Origin(max(reach, held, Reach.SHARED), None),)
        if isinstance(root, ast.Name) and reach is not Reach.ALONE:
            return (Origin(reach, root.id, is_copied),)
        return ()


def alternatives(node: ast.expr) -> list[ast.expr]:
    """The values of which an expression is one: `a if c else b`, `a or b`; empty for others."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.value] if isinstance(node, ast.NamedExpr) else []


def parted(target: ast.expr, source: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a loop over `zip(…)`, `enumerate(…)`, `reversed(…)` or `d.items()` binds to elements."""
    given = source.args if isinstance(source, ast.Call) else []
    by = getattr(source.func, "id", "") if isinstance(source, ast.Call) else ""
    targets = target.elts if isinstance(target, ast.Tuple) else []
    if by == "zip" and len(targets) == len(given):
        for one, of in zip(targets, given, strict=True):
            yield from parted(one, of)
    elif by == "enumerate" and len(targets) == 2 and given:
        yield targets[0], ast.Constant(0)
        yield from parted(targets[1], given[0])
    elif by in ("reversed", "list", "tuple", "sorted") and given:
        yield from parted(target, given[0])
    elif _is_asked(source, "values"):
        yield target, source.func  # type: ignore[attr-defined]  # a call of a method
    elif _is_asked(source, "items") and len(targets) == 2:
        yield targets[0], ast.Constant(0)
        yield targets[1], source.func  # type: ignore[attr-defined]  # a call of a method
    else:
        yield target, source


def _is_mapping(value: ast.expr) -> bool:
    """Whether an expression is a dictionary: written out, `dict(…)`, or a network's state."""
    if isinstance(value, (ast.Dict, ast.DictComp)):
        return True
    if not isinstance(value, ast.Call):
        return False
    return (
        getattr(value.func, "id", "") == "dict" or getattr(value.func, "attr", "") == "state_dict"
    )


def _is_asked(node: ast.expr, method: str) -> bool:
    """Whether an expression is `name.method()`."""
    return (
        isinstance(node, ast.Call)
        and not node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and isinstance(node.func.value, ast.Name)
    )
