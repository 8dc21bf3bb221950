"""What attributes, functions and parameters of a file hold, as far as its text says it.

What other files say is not known yet: a `Term` says where to look, and `Holdings` looks.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from isograd.convert.places import Place, place
from isograd.convert.tree import Tree, defaults_of
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Made, Value

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods of modules that return the module itself.
_RETURNS_ITSELF = frozenset(
    "to cuda cpu float half double bfloat16 type apply requires_grad_ train eval".split()
)
_HOLDS = frozenset("list tuple reversed iter".split())
_COPIES = frozenset(("copy.copy", "copy.deepcopy", "functools.partial"))
CONTAINERS = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"))
#: What looks at classes and calls none.
_ASKS = frozenset("isinstance issubclass super hasattr getattr setattr type".split())
#: Methods that put what they are given last into a container.
_PUTS = frozenset("append insert extend add_module register_module update setdefault".split())
_ADDS = frozenset(("add_module", "register_module"))
_NO_LAYERS = (ast.Constant, ast.JoinedStr, ast.Compare, ast.UnaryOp)
_ROWS = (ast.List, ast.Tuple, ast.Set)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)


class Term:
    """Where a value comes from."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Known(Term):
    """A layer, a class or a function."""

    value: Made | Api | ClassInfo | FunctionInfo


@dataclass(frozen=True, slots=True)
class Several(Term):
    """Any of some; of none: a number, a text, None."""

    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown(Term):
    """Anything."""


@dataclass(frozen=True, slots=True)
class Own(Term):
    """`self`: an instance of a class or of one that is derived from it."""

    of: ClassInfo


@dataclass(frozen=True, slots=True)
class Parameter(Term):
    """A parameter of a function, with its default."""

    name: str
    default: Term | None


@dataclass(frozen=True, slots=True)
class Called(Term):
    """What a call returns."""

    function: Term


@dataclass(frozen=True, slots=True)
class Member(Term):
    """An attribute by its name."""

    owner: Term
    name: str


@dataclass(frozen=True, slots=True)
class Element(Term):
    """Any element."""

    of: Term


@dataclass(frozen=True, slots=True)
class Row(Term):
    """A list, or a container of modules: its elements, with their names where they have some."""

    elements: tuple[tuple[str, Term], ...] = ()


NOTHING = Several()
UNKNOWN = Unknown()


@dataclass
class OfClass:
    """What a class binds: attributes, what is put into them, and what methods return.

    computes: whether it sets attributes by names that it computes.
    """

    attributes: dict[str, list[Term]] = field(default_factory=lambda: defaultdict(list))
    put: dict[str, list[Term]] = field(default_factory=lambda: defaultdict(list))
    methods: dict[str, Term] = field(default_factory=dict)
    computes: bool = False


@dataclass
class Holding:
    """What a file says.  classes: of its own.  others: bound to attributes of anything but self.

    functions: their parameters and what they return; constructors: parameters.  by_name: what
    arguments are given by their names, in calls and dictionaries.  by_place: classes that are
    given by place, with what is called.  owners: whose attributes are read.
    """

    classes: dict[ClassInfo, OfClass] = field(default_factory=lambda: defaultdict(OfClass))
    others: OfClass = field(default_factory=OfClass)
    functions: dict[FunctionInfo, tuple[tuple[str, ...], Term]] = field(default_factory=dict)
    constructors: dict[ClassInfo, tuple[str, ...]] = field(default_factory=dict)
    by_name: dict[str, set[Term]] = field(default_factory=lambda: defaultdict(set))
    by_place: set[tuple[Term, int, Term]] = field(default_factory=set)
    owners: dict[Place, Term] = field(default_factory=dict)


@dataclass
class Reader:
    """Reads the terms of a file.

    api_of: the API of torch that a name or an attribute names.  class_of: what is known of a class
    that the file defines.  value_of: what a name of the module is.  is_layer: whether an API is a
    class of torch's modules.
    """

    tree: Tree
    api_of: Callable[[ast.AST], str]
    class_of: Callable[[ast.ClassDef], ClassInfo | None]
    value_of: Callable[[str], Value]
    is_layer: Callable[[str], bool]
    _names: dict[tuple[ast.AST, str], Term] = field(default_factory=dict)

    def read(self, attributes: Collection[str]) -> Holding:
        """All that a file says; attributes: names of what layers hold."""
        found = Holding()
        for node in self.tree.nodes:
            if isinstance(node, ast.Attribute) and node.attr in attributes:
                self._note_owner(node.value, found)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(node, found)
            elif isinstance(node, ast.Call):
                self._given(node, found)
        for owner, name, value in self._bound():
            bound = found.others if owner is None else found.classes[owner]
            bound.attributes[name].append(value)
        return found

    def _note_owner(self, owner: ast.expr, found: Holding) -> None:
        if isinstance(owner, ast.Name) and owner.id == "self":
            return
        if isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript)):
            found.owners[place(owner)] = self.term(owner)

    # ---- expressions

    def term(self, node: ast.expr) -> Term:
        """Where the value of an expression comes from."""
        if isinstance(node, _NO_LAYERS):
            return NOTHING
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            api = self._api(node)
            return Known(Api(api)) if api else Member(self.term(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return _several((self.term(node.body), self.term(node.orelse)))
        if isinstance(node, ast.BoolOp):
            return _several(map(self.term, node.values))
        if isinstance(node, ast.NamedExpr):
            return self.term(node.value)
        if isinstance(node, _ROWS):
            return Row(tuple(("", self._part(part)) for part in node.elts))
        if isinstance(node, _COMPREHENSIONS):
            return Row((("", self.term(node.elt)),))
        if isinstance(node, ast.Subscript):
            of = self.term(node.value)
            return of if isinstance(node.slice, ast.Slice) else Element(of)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _several((self.term(node.left), self.term(node.right)))
        return UNKNOWN

    def _part(self, node: ast.expr) -> Term:
        return Element(self.term(node.value)) if isinstance(node, ast.Starred) else self.term(node)

    def _api(self, node: ast.expr) -> str:
        """The API of torch that an expression names by an import."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.tree.stored:
            return ""
        return self.api_of(node) if self._imports[root.id] == 1 else ""

    @cached_property
    def _imports(self) -> Counter[str]:
        """How many imports bind each name."""
        return Counter(
            part.asname or part.name.partition(".")[0]
            for node in self.tree.of(ast.Import, ast.ImportFrom)
            for part in node.names
        )

    def _call(self, node: ast.Call) -> Term:
        function = node.func
        api = self._api(function) if isinstance(function, (ast.Name, ast.Attribute)) else ""
        if api in CONTAINERS:
            return Row(tuple(self._children(node)))
        if api:
            return Known(Made(api)) if self.is_layer(api) else UNKNOWN
        if self._foreign(function) in _COPIES and node.args:
            return self._part(node.args[0])
        if isinstance(function, ast.Attribute) and function.attr in _RETURNS_ITSELF:
            return self.term(function.value)
        name = getattr(function, "id", "")
        if name in _HOLDS and name not in self.tree.stored and len(node.args) == 1:
            return self.term(node.args[0])
        return Called(self.term(function))

    def _foreign(self, function: ast.expr) -> str:
        """The full name of a function of another library that a call calls."""
        root = function.value if isinstance(function, ast.Attribute) else function
        if not isinstance(root, ast.Name) or root.id in self.tree.stored:
            return ""
        value = self.value_of(root.id) if self._imports[root.id] == 1 else None
        if not isinstance(value, Foreign):
            return ""
        return value.name if root is function else f"{value.name}.{function.attr}"  # type: ignore[attr-defined]

    def _children(self, node: ast.Call) -> Iterator[tuple[str, Term]]:
        """What a container is made of."""
        for given in node.args:
            rows = given
            if isinstance(rows, ast.Call) and getattr(rows.func, "id", "") == "OrderedDict":
                rows = rows.args[0] if rows.args else ast.List(elts=[])
            if isinstance(rows, _ROWS):
                for part in rows.elts:
                    yield self._child(part)
            elif isinstance(rows, ast.Dict):
                for key, value in zip(rows.keys, rows.values, strict=True):
                    yield (_text(key), self.term(value)) if key is not None else ("", UNKNOWN)
            elif rows is not given:
                yield "", UNKNOWN
            elif self._api(node.func) == "torch.nn.Sequential":
                yield "", self._part(given)
            else:
                yield "", Element(self.term(given))
        if node.keywords:
            yield "", UNKNOWN

    def _child(self, part: ast.expr) -> tuple[str, Term]:
        if isinstance(part, ast.Tuple) and len(part.elts) == 2:
            return _text(part.elts[0]), self.term(part.elts[1])
        return "", self._part(part)

    # ---- names

    def _name(self, node: ast.Name) -> Term:
        for part in self.tree.above(node):
            if isinstance(part, ast.Lambda) and node.id in _parameters(part):
                return UNKNOWN
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.id in _parameters(part) or node.id in self._stored[part]:
                    return self._local(part, node.id)
        return self._of_module(node)

    def _of_module(self, node: ast.Name) -> Term:
        api = self._api(node)
        if api:
            return Known(Api(api))
        if self._imports[node.id] + self.tree.times_bound[node.id] != 1:
            return UNKNOWN
        value = self.value_of(node.id)
        is_known = isinstance(value, (ClassInfo, FunctionInfo))
        return Known(value) if is_known else UNKNOWN  # type: ignore[arg-type]

    @cached_property
    def _stored(self) -> dict[ast.AST, dict[str, list[ast.AST]]]:
        """What binds the names of each function."""
        found: dict[ast.AST, dict[str, list[ast.AST]]] = defaultdict(lambda: defaultdict(list))
        for node in self.tree.binding:
            function = self.tree.function(node)
            if function is not None:
                name = getattr(node, "id", getattr(node, "name", ""))
                found[function][name].append(node)
        return found

    def _local(self, function: _Function, name: str) -> Term:
        key = (function, name)
        if key not in self._names:
            self._names[key] = UNKNOWN  # within a cycle
            self._names[key] = self._bound_in(function, name)
        return self._names[key]

    def _bound_in(self, function: _Function, name: str) -> Term:
        stores = self._stored[function].get(name, [])
        found = [self._stored_at(store) for store in stores]
        if name in _parameters(function):
            found.append(self._parameter(function, name))
        put = [Row((("", value),)) for value in self._put_in_names.get((function, name), ())]
        return _several((*found, *put))

    def _parameter(self, function: _Function, name: str) -> Term:
        owner = self.tree.parents.get(function)
        given = [*function.args.posonlyargs, *function.args.args]
        if isinstance(owner, ast.ClassDef) and given and given[0].arg == name:
            info = self.class_of(owner)
            return Own(info) if info is not None and not function.decorator_list else UNKNOWN
        default = defaults_of(function).get(name)
        return Parameter(name, None if default is None else self.term(default))

    def _stored_at(self, node: ast.AST) -> Term:
        """What a statement or a loop binds to a name."""
        parent = self.tree.parents.get(node)
        if isinstance(parent, ast.Assign) and node in parent.targets:
            return self.term(parent.value)
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            return NOTHING if parent.value is None else self.term(parent.value)
        position = -1
        target = node
        if isinstance(parent, ast.Tuple):
            position, target = parent.elts.index(node), parent  # type: ignore[arg-type]
            parent = self.tree.parents.get(parent)
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.target is target:
            return self._of_loop(parent.iter, position)
        return UNKNOWN

    def _of_loop(self, rows: ast.expr, position: int) -> Term:
        name = getattr(rows.func, "id", "") if isinstance(rows, ast.Call) else ""
        if position < 0:
            return NOTHING if name == "range" else Element(self.term(rows))
        if not isinstance(rows, ast.Call) or name in self.tree.stored:
            return UNKNOWN
        if name == "enumerate":
            return Element(self.term(rows.args[0])) if position and rows.args else NOTHING
        if name == "zip" and position < len(rows.args):
            return Element(self.term(rows.args[position]))
        return UNKNOWN

    @cached_property
    def _put_in_names(self) -> dict[tuple[ast.AST, str], list[Term]]:
        """What is put into lists that are variables of a function."""
        found: dict[tuple[ast.AST, str], list[Term]] = defaultdict(list)
        for node in self.tree.of(ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr in _PUTS:
                around = self.tree.function(node)
                if isinstance(function.value, ast.Name) and around is not None and node.args:
                    key = (around, function.value.id)
                    found[key].append(UNKNOWN)  # within a cycle
                    found[key][-1] = self._put(node)
        return found

    def _put(self, node: ast.Call) -> Term:
        value = self.term(node.args[-1])
        return Element(value) if node.func.attr in ("extend", "update") else value  # type: ignore[attr-defined]

    # ---- attributes

    def _bound(self) -> Iterator[tuple[ClassInfo | None, str, Term]]:
        """What is bound to attributes: of a class here, or of anything else."""
        for node in self.tree.of(ast.Attribute):
            if not isinstance(node.ctx, ast.Store):
                continue
            parent = self.tree.parents.get(node)
            value = getattr(parent, "value", None)
            is_plain = isinstance(parent, (ast.Assign, ast.AnnAssign)) and node is not value
            if is_plain and value is None:
                continue  # an annotation
            term = self.term(value) if is_plain and value is not None else UNKNOWN
            yield self._owner(node.value), node.attr, term
        for owner in self.tree.of(ast.ClassDef):
            info = self.class_of(owner)
            for statement in owner.body if info is not None else ():
                for target in getattr(statement, "targets", ()):
                    if isinstance(target, ast.Name):
                        yield info, target.id, self.term(statement.value)  # type: ignore[attr-defined]

    def _owner(self, node: ast.expr) -> ClassInfo | None:
        """The class whose `self` an expression is."""
        found = self.term(node) if isinstance(node, ast.Name) else None
        return found.of if isinstance(found, Own) else None

    def _function(self, node: _Function, found: Holding) -> None:
        """What a function returns, and its parameters."""
        owner = self.tree.parents.get(node)
        info = self.class_of(owner) if isinstance(owner, ast.ClassDef) else None
        names = tuple(part.arg for part in (*node.args.posonlyargs, *node.args.args))
        if info is not None:
            if node.name == "__init__":
                found.constructors[info] = names[1:]
            known = found.classes[info].methods.get(node.name, NOTHING)
            found.classes[info].methods[node.name] = _several((known, self._returned(node)))
        elif owner is self.tree.module and self.tree.times_bound[node.name] == 1:
            value = self.value_of(node.name)
            if isinstance(value, FunctionInfo):
                found.functions[value] = (names, self._returned(node))

    def _returned(self, node: _Function) -> Term:
        if node.decorator_list or isinstance(node, ast.AsyncFunctionDef):
            return UNKNOWN
        values: list[Term] = []
        for part in self.tree.walked(node):
            if isinstance(part, (ast.Yield, ast.YieldFrom)):
                return UNKNOWN
            if isinstance(part, ast.Return) and self.tree.function(part) is node:
                values += [self.term(part.value)] if part.value is not None else []
        return _several(values)

    # ---- calls

    def _given(self, node: ast.Call, found: Holding) -> None:
        """What a call gives to parameters, and what it puts into attributes."""
        for word in node.keywords:
            if word.arg is not None and not isinstance(word.value, _NO_LAYERS):
                found.by_name[word.arg].add(self.term(word.value))
        self._given_by_place(node, found)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _PUTS and node.args:
            self._put_into(node, function, found)
        if getattr(function, "id", "") in ("setattr", "getattr", "hasattr") and len(node.args) > 1:
            self._note_owner(node.args[0], found)
            if function.id == "setattr" and len(node.args) == 3:  # type: ignore[attr-defined]
                self._set(node.args[0], node.args[1], node.args[2], found)

    def _given_by_place(self, node: ast.Call, found: Holding) -> None:
        if getattr(node.func, "id", "") in _ASKS or self._foreign(node.func) in _COPIES:
            return
        for index, given in enumerate(node.args):
            if isinstance(given, (ast.Name, ast.Attribute, ast.IfExp, ast.Call)):
                term = self.term(given)
                if _names_class(term) and not self._api(node.func):
                    found.by_place.add((self.term(node.func), index, term))

    def _put_into(self, node: ast.Call, function: ast.Attribute, found: Holding) -> None:
        owner = function.value
        if function.attr in _ADDS and len(node.args) == 2:
            self._set(owner, node.args[0], node.args[1], found)
        elif function.attr in _ADDS and self._owner(owner) is not None:
            found.classes[self._owner(owner)].computes = True  # type: ignore[index]
        if isinstance(owner, ast.Attribute):
            of = self._owner(owner.value)
            bound = found.others if of is None else found.classes[of]
            bound.put[owner.attr].append(self._put(node))

    def _set(self, owner: ast.expr, name: ast.expr, value: ast.expr, found: Holding) -> None:
        of = self._owner(owner)
        if _text(name):
            bound = found.others if of is None else found.classes[of]
            bound.attributes[_text(name)].append(self.term(value))
        elif of is not None:
            found.classes[of].computes = True


def _names_class(term: Term) -> bool:
    if isinstance(term, Several):
        return any(map(_names_class, term.terms))
    return isinstance(term, Parameter) or (
        isinstance(term, Known) and not isinstance(term.value, Made)
    )


def _several(terms: Iterable[Term]) -> Term:
    found: dict[Term, None] = {}
    for term in terms:
        found.update(dict.fromkeys(term.terms if isinstance(term, Several) else (term,)))
    return next(iter(found)) if len(found) == 1 else Several(tuple(found))


def _text(node: ast.expr) -> str:
    """A name that is written out; empty for others."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def _parameters(function: _Function | ast.Lambda) -> set[str]:
    given = function.args
    parts = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    parts += [part for part in (given.vararg, given.kwarg) if part is not None]
    return {part.arg for part in parts}
