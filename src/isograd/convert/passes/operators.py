"""Bitwise operators, of which MindSpore's tensors have others or none."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.scan.values import MASK, Tensor, Value

_SHIFTS = {
    ast.LShift: "composites.bitwise_left_shift",
    ast.RShift: "composites.bitwise_right_shift",
}
_EITHER_WAY = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}


class BitwiseOperators:
    """`~n` is a logical not in MindSpore, `n >> 1` and `1 & n` raise there."""

    kinds = (ast.UnaryOp, ast.BinOp)
    examples = (
        Example(
            "the complement of integers",
            """
            def f(n: torch.Tensor):
                return ~n
            """,
        ),
    )
    counterexamples = (
        Example(
            "the complement of a mask",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return ~(x > 0)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a function, or the tensor first."""
        operands = file.facts.operands.get(place(node))
        if operands is None:
            return False
        if isinstance(node, ast.UnaryOp):
            if not _may_be_of_numbers(node.operand, operands[0]):
                return False
            code = f"{file.name('composites.bitwise_not')}({file.argument(node.operand)})"
        else:
            assert isinstance(node, ast.BinOp)
            found = _binary(node, operands, file)
            if not found:
                return False
            code = found
        file.replace(node, code)
        file.uses += 1
        file.converted += 1
        return True


def _may_be_of_numbers(operand: ast.expr, value: Value) -> bool:
    """Whether `~x` may be asked of a tensor of numbers; of unknown calls it is taken not to be."""
    if value is None:
        return isinstance(operand, (ast.Name, ast.Attribute, ast.Subscript))
    return isinstance(value, Tensor) and value is not MASK


def _binary(node: ast.BinOp, operands: tuple[Value, ...], file: FileEdit) -> str:
    left, right = (isinstance(value, Tensor) for value in operands)
    shift = _SHIFTS.get(type(node.op))
    if shift is not None and (left or right):
        return f"{file.name(shift)}({file.argument(node.left)}, {file.argument(node.right)})"
    sign = _EITHER_WAY.get(type(node.op))
    if sign is not None and right and isinstance(node.left, ast.Constant):
        return f"{layout.operand(file, node.right)} {sign} {file.source(node.left)}"
    return ""
