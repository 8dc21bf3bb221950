"""Shapes, which are plain tuples in MindSpore: without methods, and like any others."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of, times_bound
from isograd.convert.types_and_settings import TYPED_TENSORS

_MAKING = frozenset(("torch.Size", "torch.broadcast_shapes"))


#: Constructors that take sizes, or numbers in a list or a tuple.
_OF_SIZES = frozenset((*TYPED_TENSORS, "torch.Tensor", "torch.Tensor.new"))


class LegacySizes:
    """`torch.Tensor(x.size())` makes a tensor of that shape, and no tensor of two numbers."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a tensor of a shape",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.Tensor(x.size())
            """,
        ),
        Example(
            "what an object calls its shape",
            """
            class Space:
                def __init__(self):
                    self.shape = (2, 3)

            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.Tensor(Space().shape)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a tensor of numbers",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.Tensor([1.0, 2.0])
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the sizes one by one; the call itself is for other passes.

        Whether it is a tensor's shape is asked when the port runs, where the owner is not known.
        """
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.api not in _OF_SIZES or len(node.args) != 1 or node.keywords:
            return False
        (sizes,) = node.args
        if not _is_shape(sizes, file):
            return False
        known = file.use(sizes)
        is_tensors = known is not None and known.api == "torch.Tensor.shape"
        if isinstance(sizes, ast.Attribute) and not is_tensors:
            asked = file.name("composites.legacy_data")
            file.replace(sizes, f"*{asked}({file.source(sizes.value)})")
            return False
        source = file.source(sizes)
        is_closed = isinstance(sizes, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        file.replace(sizes, f"*{source}" if is_closed else f"*({source})")
        return False


class Shapes:
    """`x.shape[2:].numel()`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "the elements of a part of a shape",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.shape[2:].numel()
            """,
        ),
    )
    counterexamples = (
        Example(
            "the elements of a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.numel()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the product of the sizes."""
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "numel":
            return False
        shape = node.func.value
        if not _is_shape(shape, file) and (file.use(node.func) or node.args or node.keywords):
            return False  # of what is unknown, the port looks whether it is a shape
        file.replace(node, f"{file.name('composites.element_count')}({file.source(shape)})")
        file.uses += 1
        file.converted += 1
        return True


def _is_shape(node: ast.expr, file: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is a shape, or a part of one, by how it is written."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_shape(node.value, file, seen)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_shape(node.left, file, seen)
    if isinstance(node, ast.Attribute):
        return node.attr == "shape"
    if isinstance(node, ast.Call):
        is_asked = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
        return (is_asked and not node.args) or file.api_of_call(node) in _MAKING
    if not isinstance(node, ast.Name):
        return False
    scope = scope_of(node, file)
    if node.id in scope.parameters or node.id in seen:
        return False
    values = scope.values_of(node.id)
    if len(values) != times_bound(node, file):
        return False
    known = seen | {node.id}
    others = [value for value in values if not _is_part_of(node.id, value)]
    return bool(others) and all(_is_shape(value, file, known) for value in others)


def _is_part_of(name: str, value: ast.expr) -> bool:
    """Whether a value is `shape[1:]` of the name itself."""
    is_part = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
    return is_part and getattr(value.value, "id", "") == name  # type: ignore[attr-defined]  # a Subscript
