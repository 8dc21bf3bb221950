"""The kinds of the names of one function, read from how each is bound: `Locals`."""

from __future__ import annotations

import ast
import functools
from typing import TypeVar

from isograd.static_graph.scope import (
    CELL,
    CELLS,
    LIST,
    MASK,
    PARTIAL,
    SEQUENCE,
    TENSOR,
    TENSORS,
    FileScope,
    is_self_attribute,
)

_Node = TypeVar("_Node", bound=ast.AST)
#: Members of a tensor that are no tensors.
_PLAIN = frozenset(
    "shape dtype ndim size dim numel item tolist asnumpy numpy device is_floating_point".split()
)
_TEXTS = frozenset("int bool str float Tuple tuple Sequence Callable".split())


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
        self.by_type = file.by_type(function)
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
        return self.by_type.get(kind, [])

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


def _may_be_tensor(argument: ast.arg, default: ast.expr | None) -> bool:
    if isinstance(default, ast.Constant) and default.value is not None:
        return False
    note = argument.annotation
    if isinstance(note, ast.Subscript):
        note = note.value
    name = note.attr if isinstance(note, ast.Attribute) else getattr(note, "id", "")
    return name not in _TEXTS and name.lower() not in ("list", "dict", "optionaldict")
