"""Where the values of a file's expressions come from."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from isograd.convert.analysis.terms import (
    CONTAINERS,
    NOTHING,
    UNKNOWN,
    Called,
    Element,
    Known,
    Member,
    Own,
    Parameter,
    Row,
    Term,
    several,
)
from isograd.convert.tree import Tree, defaults_of
from isograd.scan.values import Api, ClassInfo, Foreign, FunctionInfo, Made, Value

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: Methods of modules that return the module itself.
_RETURNS_ITSELF = frozenset(
    "to cuda cpu float half double bfloat16 type apply requires_grad_ train eval".split()
)
#: Functions of Python's that put nothing into what they are given.
_READS = frozenset("len list tuple reversed iter enumerate zip isinstance print max min".split())
_HOLDS = frozenset("list tuple reversed iter".split())
COPIES = frozenset(("copy.copy", "copy.deepcopy", "functools.partial"))
#: Methods that put what they are given last into a container.
PUTS = frozenset("append insert extend add_module register_module update setdefault".split())
_OF_CLASSES = frozenset(("staticmethod", "classmethod"))
NO_LAYERS = (ast.Constant, ast.JoinedStr, ast.Compare, ast.UnaryOp)
_ROWS = (ast.List, ast.Tuple, ast.Set)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)


@dataclass
class TermReader:
    """Reads the terms of expressions.

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
    _own_names: dict[ast.AST, frozenset[str]] = field(default_factory=dict)

    # ---- expressions

    def term(self, node: ast.expr) -> Term:
        """Where the value of an expression comes from."""
        if isinstance(node, NO_LAYERS):
            return NOTHING
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            api = self.api(node)
            return Known(Api(api)) if api else Member(self.term(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return several((self.term(node.body), self.term(node.orelse)))
        if isinstance(node, ast.BoolOp):
            return several(map(self.term, node.values))
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
            return several((self.term(node.left), self.term(node.right)))
        return UNKNOWN

    def _part(self, node: ast.expr) -> Term:
        return Element(self.term(node.value)) if isinstance(node, ast.Starred) else self.term(node)

    def api(self, node: ast.expr) -> str:
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
        api = self.api(function) if isinstance(function, (ast.Name, ast.Attribute)) else ""
        if api in CONTAINERS:
            return Row(tuple(self._children(node)))
        if api:
            return Known(Made(api)) if self.is_layer(api) else UNKNOWN
        if self.foreign(function) in COPIES and node.args:
            return self._part(node.args[0])
        if isinstance(function, ast.Attribute) and function.attr in _RETURNS_ITSELF:
            return self.term(function.value)
        name = getattr(function, "id", "")
        if name in _HOLDS and name not in self.tree.stored and len(node.args) == 1:
            return self.term(node.args[0])
        return Called(self.term(function))

    def foreign(self, function: ast.expr) -> str:
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
                    yield (text_of(key), self.term(value)) if key is not None else ("", UNKNOWN)
            elif rows is not given:
                yield "", UNKNOWN
            elif self.api(node.func) == "torch.nn.Sequential":
                yield "", self._part(given)
            else:
                yield "", Element(self.term(given))
        if node.keywords:
            yield "", UNKNOWN

    def _child(self, part: ast.expr) -> tuple[str, Term]:
        if isinstance(part, ast.Tuple) and len(part.elts) == 2:
            return text_of(part.elts[0]), self.term(part.elts[1])
        return "", self._part(part)

    # ---- names

    def _name(self, node: ast.Name) -> Term:
        for part in self.tree.above(node):
            if isinstance(part, _FUNCTIONS) and node.id in self._known_in(part):
                return UNKNOWN if isinstance(part, ast.Lambda) else self._local(part, node.id)
        return self._of_module(node)

    def _known_in(self, function: _Function | ast.Lambda) -> Container[str]:
        """The names that a function binds."""
        found = self._own_names.get(function)
        if found is None:
            found = _parameters(function).union(self._stored[function])
            self._own_names[function] = found
        return found

    def _of_module(self, node: ast.Name) -> Term:
        api = self.api(node)
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
        if self._imports[name]:
            return UNKNOWN
        stores = self._stored[function].get(name, [])
        found = [self._stored_at(store) for store in stores]
        if name in _parameters(function):
            found.append(self._parameter(function, name))
        put = [self._put_of(*one) for one in self._put_in_names.get((function, name), ())]
        if (function, name) in self._handed_on and any(isinstance(part, Row) for part in found):
            put.append(UNKNOWN)  # which may put others into it
        return several((*found, *(Row((("", value),)) for value in put)))

    def _parameter(self, function: _Function, name: str) -> Term:
        owner = self.tree.parents.get(function)
        given = [*function.args.posonlyargs, *function.args.args]
        if isinstance(owner, ast.ClassDef) and given and given[0].arg == name:
            info = self.class_of(owner)
            is_of_class = any(
                getattr(one, "id", "") in _OF_CLASSES for one in function.decorator_list
            )
            return Own(info) if info is not None and not is_of_class else UNKNOWN
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
        if name in self.tree.stored:
            name = ""
        if position < 0:
            return NOTHING if name == "range" else Element(self.term(rows))
        if not isinstance(rows, ast.Call):
            return UNKNOWN
        if name == "enumerate":
            return Element(self.term(rows.args[0])) if position and rows.args else NOTHING
        if name == "zip" and position < len(rows.args):
            return Element(self.term(rows.args[position]))
        return UNKNOWN

    @cached_property
    def _put_in_names(self) -> dict[tuple[ast.AST, str], list[tuple[ast.expr, bool]]]:
        """What is put into variables of functions that hold lists, and whether its elements are."""
        found: dict[tuple[ast.AST, str], list[tuple[ast.expr, bool]]] = defaultdict(list)
        for node in self.tree.of(ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr in PUTS and node.args:
                owner = function.value
                if isinstance(owner, ast.Name) and owner.id != "self":
                    is_row = function.attr in ("extend", "update")
                    found[self._binder(owner), owner.id].append((node.args[-1], is_row))
        for name in self.tree.of(ast.Name):
            parent = self.tree.parents.get(name)
            if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Store):
                continue
            statement = self.tree.parents.get(parent)
            if parent.value is name and isinstance(statement, ast.Assign):
                is_row = isinstance(parent.slice, ast.Slice)
                found[self._binder(name), name.id].append((statement.value, is_row))
        return found

    @cached_property
    def _handed_on(self) -> set[tuple[ast.AST, str]]:
        """Variables that are given to functions of the project or of others."""
        found: set[tuple[ast.AST, str]] = set()
        for node in self.tree.of(ast.Call):
            given = [*node.args, *(word.value for word in node.keywords)]
            names = [one for one in given if isinstance(one, ast.Name)]
            if names and getattr(node.func, "id", "") not in _READS and not self.api(node.func):
                found |= {(self._binder(name), name.id) for name in names}
        return found

    def _binder(self, node: ast.Name) -> ast.AST:
        """The function that binds a name; the module where none does."""
        for part in self.tree.above(node):
            if isinstance(part, _FUNCTIONS) and node.id in self._known_in(part):
                return part
        return self.tree.module

    def _put_of(self, value: ast.expr, is_row: bool) -> Term:
        return Element(self.term(value)) if is_row else self.term(value)

    def put(self, node: ast.Call) -> Term:
        """What a method puts into a list or a container."""
        return self._put_of(node.args[-1], node.func.attr in ("extend", "update"))  # type: ignore[attr-defined]


def text_of(node: ast.expr) -> str:
    """A name that is written out; empty for others."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def _parameters(function: _Function | ast.Lambda) -> frozenset[str]:
    given = function.args
    parts = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    parts += [part for part in (given.vararg, given.kwarg) if part is not None]
    return frozenset(part.arg for part in parts)
