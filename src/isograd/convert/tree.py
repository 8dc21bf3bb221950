"""One walk over a file's tree: the nodes that passes ask for, inner ones first, and parents."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TypeVar, overload

from isograd.static_graph.scope import LEAVES, below, children

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_BODIES = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
#: Nodes that read or bind names.
_NAMED = frozenset(
    (ast.Name, ast.arg, ast.FormattedValue, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
)
_START = attrgetter("lineno", "col_offset")
_END = attrgetter("end_lineno", "end_col_offset")
_Node = TypeVar("_Node", bound=ast.AST)
_Other = TypeVar("_Other", bound=ast.AST)
Loop = ast.For | ast.comprehension
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class BoundNames:
    """What binds the names of a function.

    values: of plain assignments; sizes: how often a name is one of several that take `x.shape`;
    stores: how often it is bound at all; arguments: of the function and of those in it.
    """

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)
    stores: Counter[str] = field(default_factory=Counter)
    arguments: set[str] = field(default_factory=set)


@dataclass
class Tree:
    """A parsed file; parents: the node around each node; nodes: of the kinds asked for."""

    module: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    nodes: list[ast.AST] = field(default_factory=list)
    #: Names that anything but an import binds, anywhere in the file.
    stored: set[str] = field(default_factory=set)
    #: All names that are read, bound or defined, imports left out.
    used: set[str] = field(default_factory=set)
    #: Nodes inside f-strings.
    formatted: set[ast.AST] = field(default_factory=set)
    #: What binds a name in a body: stored names, functions and classes.
    binding: list[ast.AST] = field(default_factory=list)
    #: How names are bound in the functions that were asked for (`analysis.bound_names`).
    bound_in: dict[ast.AST, BoundNames] = field(default_factory=dict)
    #: The nodes below each that has some.
    children: dict[ast.AST, list[ast.AST]] = field(default_factory=dict)
    _walked: dict[ast.AST, list[ast.AST]] = field(default_factory=dict)
    #: The functions around the nodes that were asked for.
    _functions: dict[ast.AST, ast.FunctionDef | ast.AsyncFunctionDef | None] = field(
        default_factory=dict
    )
    _of: dict[tuple[type[ast.AST], ...], list[ast.AST]] = field(default_factory=dict)

    def walked(self, node: ast.AST) -> list[ast.AST]:
        """The node and all below it, as `below` gives them; walked once."""
        found = self._walked.get(node)
        if found is None:
            found = self._below(node)
            self._walked[node] = found
        return found

    def _below(self, node: ast.AST) -> list[ast.AST]:
        if node not in self.parents and node is not self.module:
            return below(node)  # made by a pass
        found = [node]
        for part in found:
            found += self.children.get(part, ())
        return found

    @cached_property
    def _by_kind(self) -> dict[type, list[ast.AST]]:
        found: dict[type, list[ast.AST]] = {}
        for node in self.nodes:
            found.setdefault(node.__class__, []).append(node)
        return found

    @cached_property
    def own_names(self) -> frozenset[str]:
        """The names that the file binds anywhere; those of imports where they were asked for."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        defined = (node.name for node in self.binding if isinstance(node, kinds))
        imported = (
            part.asname or part.name.partition(".")[0]
            for node in self.of(ast.Import, ast.ImportFrom)
            for part in node.names
        )
        return frozenset((*self.stored, *defined, *imported))

    @cached_property
    def times_bound(self) -> Counter[str]:
        """How often anything but an import or a parameter binds a name, anywhere in the file."""
        return Counter(getattr(node, "id", getattr(node, "name", "")) for node in self.binding)

    @cached_property
    def defined(self) -> dict[str, list[ast.AST]]:
        """The functions and classes of each name, anywhere in the file."""
        found: dict[str, list[ast.AST]] = {}
        for node in self.binding:
            if not isinstance(node, ast.Name):
                found.setdefault(getattr(node, "name", ""), []).append(node)
        return found

    @cached_property
    def values_of_module(self) -> dict[str, list[ast.expr]]:
        """What assignments outside of functions bind to names."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.of(ast.Assign):
            if self.function(node) is None:
                for target, value in (p for t in node.targets for p in pairs_of(t, node.value)):
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(value)
        return found

    @overload
    def of(self, kind: type[_Node], /) -> list[_Node]: ...
    @overload
    def of(self, kind: type[_Node], other: type[_Other], /) -> list[_Node | _Other]: ...
    @overload
    def of(self, *kinds: type[ast.AST]) -> list[ast.AST]: ...
    def of(self, *kinds: type[ast.AST]) -> Sequence[ast.AST]:
        """The nodes of these kinds, inner ones first; kinds that nobody asked for have none."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], [])
        if kinds not in self._of:
            found = list(chain.from_iterable(self._by_kind.get(kind, []) for kind in kinds))
            self._of[kinds] = _inner_first(found)
        return self._of[kinds]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement in which a node stands, or itself."""
        found = node
        while not isinstance(found, ast.stmt):
            found = self.parents[found]
        return found

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function in whose body a node stands; None at the level of a module or class."""
        if node in self._functions:
            return self._functions[node]
        part = self.parents.get(node)
        while part is not None and part.__class__ not in _BODIES:
            part = self.parents.get(part)
        found = part if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        self._functions[node] = found
        return found

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        return next((part for part in self.above(node) if isinstance(part, ast.ClassDef)), None)

    def scope(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        """The function in which a node runs, the bodies of classes included; else the module."""
        for part in self.above(node):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return part
        return self.module

    def is_in_class_body(self, node: ast.AST) -> bool:
        """Whether a name that is bound at a node becomes a member of a class."""
        for part in self.above(node):
            if isinstance(part, _SCOPES):
                return isinstance(part, ast.ClassDef)
        return False

    def loop(self, name: ast.Name) -> Loop | None:
        """The innermost loop or comprehension around a name that binds it, in its function."""
        for part in self.above(name):
            generators: list[Loop] = getattr(part, "generators", [])
            for found in [part] if isinstance(part, ast.For) else generators:
                if name.id in names_of(found.target):
                    return found
            if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                break
        return None

    def is_statement(self, node: ast.AST) -> bool:
        """Whether an expression is a statement of its own, whose value nobody takes."""
        return isinstance(self.parents.get(node), ast.Expr)

    def binds(self, name: str, node: ast.AST) -> bool:
        """Whether a function around the node has a parameter or a variable of this name."""
        return any(name in bound for bound in self._bound_around(name, node))

    def is_own(self, name: str, node: ast.AST) -> bool:
        """Whether a name is one of the innermost function, or of the module outside of them."""
        innermost = next(self._bound_around(name, node), None)
        return self.function(node) is None if innermost is None else name in innermost

    def _bound_around(self, name: str, node: ast.AST) -> Iterator[set[str]]:
        """What the functions around a node bind, the innermost first; none for unstored names."""
        if name not in self.stored:
            return
        inner: ast.AST = node
        for part in self.above(node):
            if isinstance(part, _FUNCTIONS) and _is_in_body(inner, part):
                if part not in self._bound:
                    self._bound[part] = _arguments(part)
                yield self._bound[part]
            inner = part

    @cached_property
    def _bound(self) -> dict[ast.AST, set[str]]:
        """The parameters and variables of functions, imports left out."""
        found: dict[ast.AST, set[str]] = {}
        for node in self.binding:
            name: str = node.id if isinstance(node, ast.Name) else node.name  # type: ignore[attr-defined]
            inner = node
            for part in self.above(node):
                if isinstance(part, _FUNCTIONS) and _is_in_body(inner, part):
                    if part not in found:
                        found[part] = _arguments(part)
                    found[part].add(name)
                    if not isinstance(part, ast.Lambda):
                        break
                elif isinstance(part, ast.ClassDef):
                    break
                inner = part
        return found


def names_of(node: ast.AST) -> list[str]:
    """The names that stand in an expression or in what is assigned to."""
    return [part.id for part in below(node) if isinstance(part, ast.Name)]


def counted_by(loop: ast.For | ast.comprehension) -> list[str]:
    """The names that count the rounds of a loop over a range, or of an enumeration."""
    by = getattr(loop.iter.func, "id", "") if isinstance(loop.iter, ast.Call) else ""
    if by == "range":
        return names_of(loop.target)
    if by == "enumerate" and isinstance(loop.target, ast.Tuple):
        return names_of(loop.target.elts[0])
    return []


def read_tree(module: ast.Module, kinds: Collection[type]) -> Tree:
    """Walk a module once."""
    tree = Tree(module)
    parents, nodes, known = tree.parents, tree.nodes, tree.children
    stack: list[ast.AST] = [module]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind in kinds:
            nodes.append(node)
        if kind in _NAMED:
            _note(tree, node)
        if kind in LEAVES:
            continue
        found = children(node)
        if found:
            known[node] = found
            for child in found:
                parents[child] = node
            stack += found
    _inner_first(nodes)
    return tree


def _note(tree: Tree, node: ast.AST) -> None:
    """Remember the names that a node reads or binds."""
    if isinstance(node, ast.Name):
        tree.used.add(node.id)
        if not isinstance(node.ctx, ast.Load):
            tree.stored.add(node.id)
            tree.binding.append(node)
    elif isinstance(node, ast.FormattedValue):
        tree.formatted.update(below(node.value))
    elif isinstance(node, ast.arg):
        tree.stored.add(node.arg)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        tree.used.add(node.name)
        tree.binding.append(node)


def _inner_first(nodes: list[ast.AST]) -> list[ast.AST]:
    """Sorted by the end, then by the start from behind: what is inside before what is around it."""
    nodes.sort(key=_START, reverse=True)
    nodes.sort(key=_END)
    return nodes


def _is_in_body(node: ast.AST, function: _Function) -> bool:
    """Whether a child of a function is of its body, not a default, a decorator or an annotation."""
    return isinstance(function, ast.Lambda) or node in function.body


def _arguments(function: _Function) -> set[str]:
    arguments = function.args
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    several += [part for part in (arguments.vararg, arguments.kwarg) if part is not None]
    return {part.arg for part in several}


def first_argument(call: ast.Call, name: str) -> ast.expr | None:
    """What a call is given first, by its place or by name."""
    named = [part.value for part in call.keywords if part.arg == name]
    return next(iter(call.args or named), None)


def imported_from(tree: Tree, packages: Collection[str]) -> frozenset[str]:
    """The names of modules and members that a file imports of these packages."""
    found = set[str]()
    for node in tree.of(ast.Import):
        for part in node.names:
            if part.name.partition(".")[0] in packages:
                found.add(part.asname or part.name.partition(".")[0])
    for taken in tree.of(ast.ImportFrom):
        if not taken.level and (taken.module or "").partition(".")[0] in packages:
            found |= {part.asname or part.name for part in taken.names}
    return frozenset(found)


def defaults_of(function: _Function) -> dict[str, ast.expr]:
    """The defaults of a function's parameters."""
    given = function.args
    places = [part.arg for part in (*given.posonlyargs, *given.args)]
    found = dict(zip(places[::-1], given.defaults[::-1], strict=False))
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return found | {part.arg: value for part, value in named if value is not None}


def is_true(node: ast.AST) -> bool:
    """Whether an expression is True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_none(node: ast.AST) -> bool:
    """Whether an expression is None."""
    return isinstance(node, ast.Constant) and node.value is None


def pairs_of(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values; all of a value that is not written out."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from pairs_of(one, other)
    else:
        for one in target.elts:
            yield from pairs_of(one, value)


def is_laid_out(value: ast.expr) -> bool:
    """Whether a value is `x.t().contiguous()`: a copy of a view."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr == "contiguous" and isinstance(
        value.func.value, (ast.Call, ast.Attribute)
    )


def is_type_of(node: ast.expr) -> bool:
    """`type(x)` or `x.__class__`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    is_call = isinstance(node, ast.Call) and len(node.args) == 1
    return is_call and getattr(node.func, "id", "") == "type"  # type: ignore[attr-defined]
