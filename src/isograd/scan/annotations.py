"""Reads annotations: the uses of torch in them, and what they say of a value."""

from __future__ import annotations

import ast
from functools import lru_cache

from isograd.scan import behaviour
from isograd.scan.expressions import Expressions
from isograd.scan.values import (
    ANY_MODULE,
    PARAMETER,
    PLAIN,
    TENSOR,
    Api,
    ClassInfo,
    Foreign,
    Instance,
    Items,
    Made,
    Mapping,
    Returns,
    Value,
    join_all,
)

_WRAPPERS = frozenset("Optional Union Annotated Final ClassVar Required NotRequired Unpack".split())
_LISTS = frozenset(
    """List list Sequence Iterable Iterator Set set FrozenSet frozenset Collection Generator
    MutableSequence deque Deque""".split()
)
_TUPLES = frozenset(("Tuple", "tuple"))
_MAPPINGS = frozenset(
    "Dict dict Mapping MutableMapping OrderedDict DefaultDict defaultdict".split()
)
_NUMBERS = frozenset(
    f"builtins.{name}" for name in "int float bool str bytes complex object slice range".split()
)
_OTHER_LIBRARIES = frozenset("numpy PIL pathlib os re datetime enum".split())
#: Names from libraries of types that mean tensors.
_JAXTYPING = frozenset("Float Int Bool Shaped Num Inexact Complex UInt".split())


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


#: Where torch's classes have methods of tensors' names, and hold none: `DeviceMesh.size`.
_WITHOUT_TENSORS = ("torch.distributed.", "torch.cuda.", "torch.fx.", "torch.profiler.")


class Annotations(Expressions):
    """Turns an annotation into the value that a variable of that type holds."""

    def annotation_value(self, node: ast.expr | None) -> Value:
        """The value of a variable that is annotated so; None where the annotation does not tell."""
        kind = node.__class__
        if kind is ast.Name:
            return self._of_type(self.name(node))  # type: ignore[arg-type]
        if kind is ast.Attribute:
            return self._of_type(self.attribute(node))  # type: ignore[arg-type]
        if kind is ast.Constant:
            return self._of_literal(node)  # type: ignore[arg-type]
        if kind is ast.Subscript:
            return self._of_generic(node)  # type: ignore[arg-type]
        if kind is ast.BinOp:
            return join_all(
                [self.annotation_value(node.left), self.annotation_value(node.right)]  # type: ignore[union-attr]
            )
        if kind is ast.Tuple:
            return join_all([self.annotation_value(item) for item in node.elts])  # type: ignore[union-attr]
        if kind is ast.List:
            for item in node.elts:  # type: ignore[union-attr]
                self.annotation_value(item)
        return None

    def _of_literal(self, node: ast.Constant) -> Value:
        if not isinstance(node.value, str):
            return PLAIN if node.value is None else None
        inner = _parsed(node.value)
        if inner is None:
            return None
        outer = self.state.origin
        self.state.origin = outer or (node.lineno, node.col_offset)
        found = self.annotation_value(inner)
        self.state.origin = outer
        return found

    def _of_type(self, value: Value) -> Value:
        """An instance of a class."""
        if isinstance(value, Api):
            if value.name in ("torch.nn.Parameter", "torch.nn.Buffer"):
                return PARAMETER
            if value.name in behaviour.TENSOR_CLASSES:
                return TENSOR
            kind = self.state.names.kind(value.name)
            if kind in ("M", "O", "S"):
                return Made(value.name)
            if value.name.startswith(_WITHOUT_TENSORS):
                return PLAIN
            return PLAIN if kind in ("c", "d") and value.name.count(".") == 1 else None
        if isinstance(value, ClassInfo):
            return Instance(value)
        if isinstance(value, Foreign):
            name = value.name
            if name in _NUMBERS or name.partition(".")[0] in _OTHER_LIBRARIES:
                return PLAIN
            last = name.rpartition(".")[2]
            if name.startswith(("builtins.", "typing.", "collections.")):
                if last in _LISTS or last in _TUPLES:
                    return Items(None)
                return Mapping(None) if last in _MAPPINGS else None
            return TENSOR if last in ("Tensor", "FloatTensor") else None
        return value if isinstance(value, (Items, Mapping, Returns)) or value is TENSOR else None

    def _of_generic(self, node: ast.Subscript) -> Value:
        """`Optional[…]`, `list[…]`, `Callable[…, …]` and the like."""
        base = node.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        head = self.visit(base)
        inner = node.slice
        items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if name == "Literal":
            return PLAIN
        if not items:
            return Items(None)
        found = [self.annotation_value(item) for item in items]
        if name in _WRAPPERS:
            return found[0] if name == "Annotated" else join_all(found)
        if name in _LISTS:
            return Items(found[0])
        if name in _TUPLES:
            return _tuple(items, found)
        if name in _MAPPINGS:
            return Mapping(found[-1])
        if name in ("Type", "type"):
            return Returns(found[0])
        if name == "Callable":
            result = found[-1] if len(found) > 1 else None
            return Returns(result) if result is not None else None
        if isinstance(head, Foreign) and name in _JAXTYPING:
            return TENSOR
        return self._of_type(head)


def _tuple(items: list[ast.expr], found: list[Value]) -> Items:
    last = items[-1]
    if isinstance(last, ast.Constant) and last.value is ...:
        return Items(found[0])
    return Items(join_all(found), tuple(found))


def module_of_annotation(value: Value) -> Value:
    """`nn.Module` as annotation means any module."""
    return ANY_MODULE if isinstance(value, Made) and value.api == "torch.nn.Module" else value
