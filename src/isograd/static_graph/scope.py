"""What the names of a file mean, as far as the rules of the static graph need it.

Names are resolved through imports; what a value is (a list, a tensor, a CellList) is read from how
it is made.  What cannot be known is unknown, and no rule speaks of it.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_BUILTINS = frozenset(vars(builtins))
#: Kinds of values.
TENSOR, MASK, LIST, DICT, NUMBER, NONE = "tensor", "mask", "list", "dict", "number", "none"
CELL, CELLS, SEQUENCE = "cell", "cells", "sequence"
PARAMETER, BUFFER, PARTIAL, SLICES = "parameter", "buffer", "partial", "slices"
TENSORS = (TENSOR, MASK, PARAMETER, BUFFER)

#: Bases that change nothing of how an object is made.
_PLAIN_BASES = ("builtins.object", "abc.ABC", "typing.Generic")

_LAYERS = ("mindspore.nn.", "mindspore.mint.nn.", "torch.nn.")
_OPERATORS = ("mindspore.ops.", "mindspore.mint.", "torch.")
_MAKERS = {
    "mindspore.nn.CellList": CELLS,
    "torch.nn.ModuleList": CELLS,
    "mindspore.nn.SequentialCell": SEQUENCE,
    "torch.nn.Sequential": SEQUENCE,
    "mindspore.Parameter": PARAMETER,
    "torch.nn.Parameter": PARAMETER,
    "mindspore.Tensor": TENSOR,
    "mindspore.tensor": TENSOR,
    "functools.partial": PARTIAL,
    "builtins.list": LIST,
    "builtins.dict": DICT,
    "collections.OrderedDict": DICT,
    "builtins.len": NUMBER,
    "builtins.int": NUMBER,
    "builtins.float": NUMBER,
    "torch.no_grad": "manager",
    "torch.enable_grad": "manager",
}


@dataclass
class ClassScope:
    """A class of the file: its methods, the kinds of its attributes, its decorators."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    #: The expression that an attribute is made of in __init__ or setup.
    made: dict[str, ast.expr] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()
    #: Whether `kinds` and `made` have been filled.
    is_read: bool = False


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file or a function in the order of `ast.walk`, without expressions."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for name in _blocks_of(node.__class__):  # type: ignore[arg-type] # a class is hashable
            waiting.extend(getattr(node, name))


@functools.cache
def _blocks_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a node that hold statements."""
    if issubclass(kind, ast.expr):  # the body of a lambda is an expression
        return ()
    return tuple(
        f for f in ("body", "handlers", "cases", "orelse", "finalbody") if f in kind._fields
    )


#: Fields of nodes that hold no nodes, or only the contexts and operators that all nodes share.
_NO_NODES = frozenset(
    "ctx op ops id attr arg name names asname module level kind n s conversion simple is_async "
    "type_comment rest kwd_attrs tag".split()
)
#: Nodes without others in them.
LEAVES = frozenset((ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.alias))
#: Lists that hold None where a default is missing, or a dictionary is given by `**`.
_WITH_GAPS = frozenset(("kw_defaults", "keys"))


@functools.cache
def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind is ast.Constant:
        return ()
    holds_names = kind in (ast.Import, ast.ImportFrom)
    return tuple(f for f in kind._fields if f not in _NO_NODES or (holds_names and f == "names"))


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes just below a node as `ast.iter_child_nodes`, without contexts and operators."""
    found: list[ast.AST] = []
    for name in _fields_of(node.__class__):  # type: ignore[arg-type] # a class is hashable
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [part for part in value if part is not None] if name in _WITH_GAPS else value
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def below(root: ast.AST) -> list[ast.AST]:
    """A node and what stands below it in the order of `ast.walk`, without contexts and operators.

    A third of the time of `ast.walk`, in which scan would spend most of these rules' time.
    """
    found = [root]
    for node in found:
        if node.__class__ not in LEAVES:
            found += children(node)
    return found


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements directly in a node, without those of handlers and cases."""
    found = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [block for block in found if isinstance(block, list)]


#: So many files may hand a name on to each other.
_MOST_IMPORTS = 8


class FileScope:
    """The names of one file.

    modules: the project's file that a module's dotted name means there, None for what is not the
    project's; package: the dotted package of the file, for its relative imports.
    """

    def __init__(
        self,
        tree: ast.Module,
        modules: Callable[[str], FileScope | None] | None = None,
        package: str = "",
    ) -> None:
        self.tree = tree
        self._modules, self._package = modules, package
        self.imports: dict[str, str] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, ClassScope] = {}
        self.named_tuples: set[str] = set()
        self.partials: set[str] = set()
        #: The assignments of functions that a function of the file returns: `f = maker(1)`.
        self._made_functions: dict[str, ast.Assign] = {}
        self._read: set[str] = set()
        self._by_type: dict[ast.AST, dict[type[ast.AST], list[Any]]] = {}
        self._lineages: dict[str, tuple[ClassScope, ...]] = {}
        #: What `across` has found in functions of this file, by their names.
        self.kept_findings: dict[str, list[Any]] = {}
        #: What `executed` has read of definitions of this file, by their names.
        self.kept_texts: dict[str, tuple[str, tuple[Definition, ...]]] = {}
        for node in statements(tree):
            self._import(node)
        for node in tree.body:
            self._top_level(node)

    @property
    def framework(self) -> str:
        """Which framework the file is written for, by its imports: mindspore, torch, or empty."""
        roots = {name.partition(".")[0] for name in self.imports.values()}
        return next((name for name in ("mindspore", "torch") if name in roots), "")

    def by_type(self, function: ast.AST) -> dict[type[ast.AST], list[Any]]:
        """What stands below a function of the file, by type; walked once."""
        found = self._by_type.get(function)
        if found is None:
            found = self._by_type[function] = {}
            for node in below(function)[1:]:
                found.setdefault(node.__class__, []).append(node)
        return found

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                self.imports[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and (module := self._imported_from(node)):
            for name in node.names:
                self.imports[name.asname or name.name] = f"{module}.{name.name}"

    def _imported_from(self, node: ast.ImportFrom) -> str:
        """The absolute name of the module of an import; empty where the package is not known."""
        if not node.level or not self._package:
            return "" if node.level else node.module or ""
        parts = self._package.split(".")
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    def definition(self, name: str) -> ast.stmt | None:
        """The statement at the file's top level that defines a function or class."""
        scope = self.classes.get(name)
        if scope is not None:
            return scope.node
        return self._made_functions.get(name) or self.functions.get(name)

    def elsewhere(self, node: ast.AST) -> Definition | None:
        """The function or class of another file of the project that an expression names."""
        return self._defined_as(self.qualified(node), _MOST_IMPORTS) if self._modules else None

    def definition_of(self, node: ast.AST) -> Definition | None:
        """The function or class that an expression names, of this file or another."""
        name = node.id if isinstance(node, ast.Name) else ""
        return (self, name) if self.definition(name) is not None else self.elsewhere(node)

    def is_plain_class(self, name: str) -> bool:
        """Whether a class and all that it is derived from are known and nothing but Python's.

        Neither a network nor a dataclass, a tuple, a number, an exception or a `jit_class`.
        """
        scope = self.classes.get(name)
        if scope is None or scope.decorators or scope.node.keywords:
            return False
        for base in scope.node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if self.qualified(plain) in _PLAIN_BASES:
                continue
            place = self.definition_of(plain)
            if place is None or place == (self, name) or not place[0].is_plain_class(place[1]):
                return False
        return True

    def _defined_as(self, name: str, most: int) -> Definition | None:
        module, _, last = name.rpartition(".")
        other = self._modules(module) if self._modules and module and most else None
        if other is None or other is self:
            return None
        if last in other.functions or last in other.classes:
            return other, last
        further = other.imports.get(last, "")
        return other._defined_as(further, most - 1) if further else None

    def _top_level(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            bases = tuple(self.qualified(base) for base in node.bases)
            scope = ClassScope(node, bases)
            scope.decorators = tuple(self.qualified(_called(d)) for d in node.decorator_list)
            scope.methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
            self.classes[node.name] = scope
            if "typing.NamedTuple" in bases:
                self.named_tuples.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = self.qualified(node.value.func)
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
            if made == "collections.namedtuple":
                self.named_tuples.update(names)
            if made == "functools.partial":
                self.partials.update(names)
            inner = _returned_function(self.functions.get(made))
            if inner is not None:
                self.functions.update(dict.fromkeys(names, inner))
                self._made_functions.update(dict.fromkeys(names, node))

    def qualified(self, node: ast.AST) -> str:
        """The dotted name that an expression means; empty where it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        name = node.id
        start = self.imports.get(name, name)
        if start is name and name in _BUILTINS:
            if name not in self.imports and name not in self.functions and name not in self.classes:
                start = f"builtins.{name}"
        return ".".join([start, *reversed(parts)]) if parts else start

    def lineage(self, name: str) -> tuple[ClassScope, ...]:
        """A class and its bases in the file, nearest first."""
        found = self._lineages.get(name)
        if found is None:
            found = self._lineages[name] = tuple(self._lineage(name))
        return found

    def _lineage(self, name: str) -> Iterator[ClassScope]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            name = waiting.pop(0)
            if name in self.classes and name not in seen:
                seen.add(name)
                yield self.classes[name]
                waiting += [base.rpartition(".")[2] for base in self.classes[name].bases]

    def method(self, cls: str, name: str) -> ast.FunctionDef | None:
        """A method by the order of inheritance."""
        return next((s.methods[name] for s in self.lineage(cls) if name in s.methods), None)

    def attribute(self, cls: str, name: str) -> str:
        """The kind of an attribute of self; empty where it is unknown."""
        return next((s.kinds[name] for s in self.with_attributes(cls) if name in s.kinds), "")

    def made(self, cls: str, name: str) -> ast.expr | None:
        """What an attribute of self is made of."""
        return next((s.made[name] for s in self.with_attributes(cls) if name in s.made), None)

    def with_attributes(self, cls: str) -> tuple[ClassScope, ...]:
        """The lineage of a class, with the attributes that its methods make."""
        found = self.lineage(cls)
        if cls not in self._read:
            self._read.add(cls)
            for scope in found:
                if not scope.is_read:
                    scope.is_read = True
                    self._attributes(scope)
        return found

    def _attributes(self, scope: ClassScope) -> None:
        for method in scope.methods.values():
            if method.name in ("construct", "forward"):
                continue
            local: dict[str, ast.expr] = {}
            for node in statements(method):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._made(scope, target, node.value, local)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    self._made(scope, node.target, node.value, local)
                elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    name = _registered(node.value)
                    if name:
                        scope.kinds[name] = BUFFER

    def _made(
        self, scope: ClassScope, target: ast.expr, value: ast.expr, local: dict[str, ast.expr]
    ) -> None:
        if isinstance(target, ast.Name):
            local[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for one, part in zip(target.elts, parts, strict=False):
                self._made(scope, one, part, local)
        elif is_self_attribute(target):
            assert isinstance(target, ast.Attribute)
            if isinstance(value, ast.Name) and value.id in local:
                value = local[value.id]
            scope.kinds.setdefault(target.attr, self.made_kind(value))
            scope.made.setdefault(target.attr, value)

    def made_kind(self, value: ast.expr) -> str:
        """The kind of a value by the expression that makes it."""
        if isinstance(value, (ast.List, ast.ListComp)):
            return LIST
        if isinstance(value, (ast.Dict, ast.DictComp)):
            return DICT
        if isinstance(value, ast.Constant):
            plain = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
            return NONE if value.value is None else NUMBER if plain else ""
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            return self.made_kind(value.left) if isinstance(value.left, ast.List) else ""
        if not isinstance(value, ast.Call):
            return ""
        made = self.qualified(value.func)
        if made in _MAKERS:
            return _MAKERS[made]
        last = made.rpartition(".")[2]
        if made.startswith(_LAYERS) and last[:1].isupper():
            return CELL
        bases = [base for scope in self.lineage(last) for base in scope.bases]
        if any(base in _MAKERS for base in bases):
            return next(_MAKERS[base] for base in bases if base in _MAKERS)
        if self.is_cell(last):
            return CELL
        return TENSOR if made.startswith(_OPERATORS) and last[:1].islower() else ""

    def is_cell(self, name: str) -> bool:
        """Whether a class of the file is a network or a part of one."""
        scopes = list(self.lineage(name))
        return any(
            base.startswith(_LAYERS) or base in ("mindspore.nn.Cell", "torch.nn.Module")
            for scope in scopes
            for base in scope.bases
        ) or any(
            scope.bases and ("construct" in scope.methods or "forward" in scope.methods)
            for scope in scopes
        )


#: A function or class by its file and name.
Definition = tuple[FileScope, str]


def _returned_function(maker: ast.FunctionDef | None) -> ast.FunctionDef | None:
    """The function inside another one that this returns."""
    last = maker.body[-1] if maker is not None else None
    if maker is None or not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return None
    inner = [part for part in maker.body if isinstance(part, ast.FunctionDef)]
    return next((part for part in inner if part.name == last.value.id), None)


def _registered(call: ast.Call) -> str:
    """The name that `register_buffer` is given; empty for any other call."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer" and call.args:
        name = call.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return name.value
    return ""


def is_self_attribute(node: ast.AST) -> bool:
    """`self.name`."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node
