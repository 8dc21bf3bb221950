"""`(a > b) ^ (c > d)` in a class's methods: the static graph has no `^` of Python's booleans."""

from __future__ import annotations

import ast

from isograd.convert.analysis.methods import is_in_method
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.scan.values import Tensor


class ExclusiveOrs:
    """Whether two conditions differ, where a pass may be compiled."""

    kinds = (ast.BinOp,)
    before = ("BitwiseOperators",)
    examples = (
        Example(
            "two conditions of numbers",
            """
            class Net(nn.Module):
                def forward(self, x, turned: bool):
                    if (x.shape[0] > 2) ^ (not turned):
                        x = x.flip(0)
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "integers",
            """
            class Net(nn.Module):
                def forward(self, x, first, second):
                    return x * (first ^ second)
            """,
        ),
        Example(
            "masks",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * (torch.relu(x) > 1) ^ (torch.exp(x) > 2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write `!=`, which is the same of conditions, and of masks of numpy's too."""
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.BitXor) or not is_in_method(file.tree.above(node)):
            return False
        if not _is_condition(node.left) or not _is_condition(node.right):
            return False
        operands = file.facts.operands.get(place(node), ())
        if any(isinstance(value, Tensor) for value in operands):
            return False
        file.replace(node, f"(({file.source(node.left)}) != ({file.source(node.right)}))")
        return True


def _is_condition(node: ast.expr) -> bool:
    """Whether an expression gives booleans alone, as it is written."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") in ("isinstance", "hasattr", "issubclass", "bool")
    return isinstance(node, ast.Compare)
