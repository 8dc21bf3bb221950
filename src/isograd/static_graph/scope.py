"""What the names of a file stand for, as far as the rules of the static graph need it.

Names are resolved through imports; what a value is (a list, a tensor, a CellList) is read from how
it is made.  What cannot be known is unknown, and no rule speaks of it.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

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


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a file in the order of `ast.walk`, without the expressions in them."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            waiting.extend(getattr(node, name, ()))


class FileScope:
    """The names of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.imports: dict[str, str] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, ClassScope] = {}
        self.named_tuples: set[str] = set()
        self.partials: set[str] = set()
        for node in statements(tree):
            self._import(node)
        for node in tree.body:
            self._top_level(node)
        for scope in self.classes.values():
            self._attributes(scope)

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
        """The dotted name that an expression stands for; empty where it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        known = node.id in self.imports or node.id in self.functions or node.id in self.classes
        if not known and hasattr(builtins, node.id):
            return ".".join(["builtins", node.id, *reversed(parts)])
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)])

    def lineage(self, name: str) -> Iterator[ClassScope]:
        """A class and its bases in the file, nearest first."""
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
        return next((s.kinds[name] for s in self.lineage(cls) if name in s.kinds), "")

    def made(self, cls: str, name: str) -> ast.expr | None:
        """What an attribute of self is made of."""
        return next((s.made[name] for s in self.lineage(cls) if name in s.made), None)

    def _attributes(self, scope: ClassScope) -> None:
        for method in scope.methods.values():
            if method.name in ("construct", "forward"):
                continue
            local: dict[str, ast.expr] = {}
            for node in ast.walk(method):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._made(scope, target, node.value, local)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    self._made(scope, node.target, node.value, local)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if node.func.attr == "register_buffer" and node.args:
                        name = node.args[0]
                        if isinstance(name, ast.Constant) and isinstance(name.value, str):
                            scope.kinds[name.value] = BUFFER

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
        self.nodes = tuple(
            node
            for node in ast.walk(function)
            if node is not function and not isinstance(node, (ast.expr_context, ast.operator))
        )
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)

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
