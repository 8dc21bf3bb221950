"""What the names of a file mean, as far as the rules of the static graph need it.

Names are resolved through imports; what a value is (a list, a tensor, a CellList) is read from how
it is made.  What cannot be known is unknown, and no rule speaks of it.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

_BUILTINS = frozenset(vars(builtins))
#: Kinds of values.
TENSOR, MASK, LIST, DICT, NUMBER, NONE = "tensor", "mask", "list", "dict", "number", "none"
CELL, CELLS, SEQUENCE = "cell", "cells", "sequence"
PARAMETER, BUFFER, PARTIAL, SLICES = "parameter", "buffer", "partial", "slices"
TENSORS = (TENSOR, MASK, PARAMETER, BUFFER)

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
#: Members of a tensor that are no tensors.
_PLAIN = frozenset(
    "shape dtype ndim size dim numel item tolist asnumpy numpy device is_floating_point".split()
)
_TEXTS = frozenset("int bool str float Tuple tuple Sequence Callable".split())


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
    "type_comment rest".split()
)


@functools.cache
def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind is ast.Constant:
        return ()
    holds_names = kind in (ast.Import, ast.ImportFrom)
    return tuple(f for f in kind._fields if f not in _NO_NODES or (holds_names and f == "names"))


def below(root: ast.AST) -> list[ast.AST]:
    """A node and what stands below it in the order of `ast.walk`, without contexts and operators.

    A third of the time of `ast.walk`, in which scan would spend most of these rules' time.
    """
    found = [root]
    for node in found:
        for name in _fields_of(node.__class__):  # type: ignore[arg-type] # a class is hashable
            value = getattr(node, name, None)
            if value.__class__ is list:
                found.extend(part for part in value if isinstance(part, ast.AST))
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


_Node = TypeVar("_Node", bound=ast.AST)


class FileScope:
    """The names of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.imports: dict[str, str] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, ClassScope] = {}
        self.named_tuples: set[str] = set()
        self.partials: set[str] = set()
        self._read: set[str] = set()
        self._by_type: dict[ast.AST, dict[type[ast.AST], list[Any]]] = {}
        self._lineages: dict[str, tuple[ClassScope, ...]] = {}
        for node in statements(tree):
            self._import(node)
        for node in tree.body:
            self._top_level(node)

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
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                self.imports[name.asname or name.name] = f"{node.module}.{name.name}"

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


class Locals:
    """The kinds of the names of one function, by how each was last bound."""

    def __init__(self, file: FileScope, cls: str, function: ast.FunctionDef) -> None:
        self.file, self.cls, self.function = file, cls, function
        self.kinds: dict[str, str] = {}
        arguments = [*function.args.posonlyargs, *function.args.args]
        defaults = [None] * (len(arguments) - len(function.args.defaults))
        for argument, default in zip(arguments, [*defaults, *function.args.defaults], strict=True):
            if _may_be_tensor(argument, default) and argument.arg not in ("self", "cls"):
                self.kinds[argument.arg] = TENSOR
        self.arguments = frozenset(a.arg for a in arguments) - {"self"}
        #: What stands below the function; every rule looks at it, so it is walked once.
        self._by_type = file.by_type(function)
        #: Kinds of expressions, kept once the names are bound: many rules ask for the same.
        self._kinds_of: dict[ast.expr, str] = {}
        self._is_bound = False
        for assignment in self.all(ast.Assign):
            for target in assignment.targets:
                self._bind(target, assignment.value)
        self._is_bound = True

    @functools.cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls by the qualified name of what is called; those of no known name under ""."""
        found: dict[str, list[ast.Call]] = {}
        for node in self.all(ast.Call):
            found.setdefault(self.file.qualified(node.func), []).append(node)
        return found

    def calls_below(self, prefix: str) -> list[ast.Call]:
        """The calls of names that start so."""
        return [n for name, nodes in self.calls.items() if name.startswith(prefix) for n in nodes]

    @functools.cached_property
    def methods(self) -> dict[str, list[ast.Call]]:
        """The calls of attributes by the attribute's name."""
        found: dict[str, list[ast.Call]] = {}
        for node in self.all(ast.Call):
            if isinstance(node.func, ast.Attribute):
                found.setdefault(node.func.attr, []).append(node)
        return found

    def all(self, kind: type[_Node]) -> list[_Node]:
        """The nodes of this type below the function, in the order of `nodes`."""
        return self._by_type.get(kind, [])

    @functools.cached_property
    def self_targets(self) -> list[tuple[ast.stmt, str]]:
        """The statements that bind an attribute of self, with its name."""
        bound: list[tuple[ast.stmt, ast.expr]] = [
            *((node, target) for node in self.all(ast.Assign) for target in node.targets),
            *((node, node.target) for node in self.all(ast.AugAssign)),
            *((node, node.target) for node in self.all(ast.AnnAssign)),
        ]
        return [
            (node, target.attr)
            for node, target in bound
            if isinstance(target, ast.Attribute) and is_self_attribute(target)
        ]

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            kind = self.of(value)
            if kind or target.id not in self.kinds:
                self.kinds[target.id] = kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for one, part in zip(target.elts, parts, strict=False):
                self._bind(one, part)

    def of(self, node: ast.expr) -> str:
        """The kind of an expression; empty where it is unknown."""
        if not self._is_bound:
            return self._of(node)
        kind = self._kinds_of.get(node)
        if kind is None:
            kind = self._kinds_of[node] = self._of(node)
        return kind

    def _of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, "")
        if isinstance(node, ast.Attribute):
            if is_self_attribute(node):
                return self.file.attribute(self.cls, node.attr)
            is_tensor = self.of(node.value) in TENSORS
            return TENSOR if is_tensor and node.attr in ("T", "mT", "data", "real") else ""
        if isinstance(node, ast.Subscript):
            return TENSOR if self.of(node.value) in TENSORS else ""
        if isinstance(node, ast.Call):
            return self._of_call(node)
        return self._of_operator(node)

    def _of_operator(self, node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            parts = (self.of(node.left), self.of(node.right))
            if isinstance(node.op, (ast.BitAnd, ast.BitOr)) and MASK in parts:
                return MASK
            if LIST in parts:
                return LIST
            return TENSOR if any(p in TENSORS for p in parts) else ""
        if isinstance(node, ast.UnaryOp):
            inner = self.of(node.operand)
            return inner if inner in TENSORS else ""
        if isinstance(node, ast.Compare):
            if isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                return ""
            sides = [self.of(p) for p in (node.left, *node.comparators)]
            return MASK if any(side in TENSORS for side in sides) else ""
        if isinstance(node, ast.IfExp):
            return self.of(node.body) or self.of(node.orelse)
        if isinstance(node, ast.BoolOp):
            return MASK if any(self.of(v) in TENSORS for v in node.values) else ""
        return self.file.made_kind(node)

    def _of_call(self, node: ast.Call) -> str:
        function = node.func
        if isinstance(function, ast.Attribute):
            if is_self_attribute(function):
                kind = self.file.attribute(self.cls, function.attr)
                if kind in (CELL, SEQUENCE, CELLS, PARTIAL):
                    return TENSOR
            elif self.of(function.value) in TENSORS:
                return "" if function.attr in _PLAIN else TENSOR
        if isinstance(function, ast.Subscript) and self.of(function.value) in (CELLS, SEQUENCE):
            return TENSOR
        return self.file.made_kind(node)


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


def _may_be_tensor(argument: ast.arg, default: ast.expr | None) -> bool:
    if isinstance(default, ast.Constant) and default.value is not None:
        return False
    note = argument.annotation
    if isinstance(note, ast.Subscript):
        note = note.value
    name = note.attr if isinstance(note, ast.Attribute) else getattr(note, "id", "")
    return name not in _TEXTS and name.lower() not in ("list", "dict", "optionaldict")
