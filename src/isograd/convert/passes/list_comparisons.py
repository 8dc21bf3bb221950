"""`self.block.stride == 1` where the field may be a list, which the static graph does not fold."""

from __future__ import annotations

import ast

from isograd.convert.analysis.layers import is_path
from isograd.convert.analysis.methods import is_in_method
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_COMBINING = {ast.Eq: "not isinstance({0}, list) and", ast.NotEq: "isinstance({0}, list) or"}


class ListComparisons:
    """A number beside a field of a named tuple in a method of a network.

    MindSpore 2.10 compares a list with a number when the graph runs, and compiles both branches:
    the one that is never taken need not fit (benchmarks/convert, efficientnet-pytorch).  What
    `isinstance` says of it is known when the graph is made.
    """

    kinds = (ast.Compare,)
    examples = (
        Example(
            "a field that is given a list",
            """
            Block = collections.namedtuple("Block", ["stride"])
            HALF = Block(stride=[2])

            class Net(nn.Module):
                def __init__(self, block):
                    super().__init__()
                    self.block, self.layer = block, nn.Linear(3, 3)

                def forward(self, x):
                    y = self.layer(x)
                    return y + x if self.block.stride == 1 else y
            """,
        ),
    )
    counterexamples = (
        Example(
            "a field that is given numbers",
            """
            Block = collections.namedtuple("Block", ["stride"])
            HALF = Block(stride=2)

            class Net(nn.Module):
                def __init__(self, block):
                    super().__init__()
                    self.block, self.layer = block, nn.Linear(3, 3)

                def forward(self, x):
                    y = self.layer(x)
                    return y + x if self.block.stride == 1 else y
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask first whether it is a list."""
        assert isinstance(node, ast.Compare)
        field = node.left
        if not isinstance(field, ast.Attribute) or field.attr not in file.settings.list_fields:
            return False
        before = _COMBINING.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if before is None or not _is_number(node.comparators[0]) or not is_path(field):
            return False
        if not is_in_method(file.tree.above(node)):
            return False
        code = f"{before.format(file.source(field))} {file.source(node)}"
        is_whole = _stands_alone(node, file.tree.parents[node])
        file.replace(node, code if is_whole else f"({code})")
        return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _stands_alone(node: ast.Compare, around: ast.AST) -> bool:
    """Whether a condition needs no brackets where it stands."""
    if isinstance(around, ast.BoolOp):
        return isinstance(around.op, ast.And) and isinstance(node.ops[0], ast.Eq)
    return isinstance(around, (ast.If, ast.IfExp, ast.While, ast.Assign, ast.Return)) and (
        not isinstance(around, ast.IfExp) or around.test is node
    )
