"""`F.dropout(x, 0)`: MindSpore (2.10) raises of a share of dropped elements that is an integer."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import defaults_of, pairs_of

#: The place of the share in a call.
_PLACES = {
    **{f"torch.nn.functional.{name}": 1 for name in ("dropout", "dropout1d")},
    **{f"torch.nn.Dropout{axes}d": 0 for axes in (1, 2, 3)},
    "torch.dropout": 1,
}
_DEEPEST = 6


class WholeShares:
    """Dropout by a number that may be an integer; the call itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a layer without dropout by default",
            """
            class Net(nn.Module):
                def __init__(self, dropout=0):
                    super().__init__()
                    self.dropout = dropout

                def forward(self, x):
                    return nn.functional.dropout(x, p=self.dropout, training=self.training)
            """,
        ),
        Example("a number", "layer = nn.Dropout2d(0)"),
    )
    counterexamples = (
        Example(
            "a fraction",
            """
            def f(x: torch.Tensor, y: torch.Tensor, share=0.1):
                return nn.functional.dropout(x, share)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the share as a fraction."""
        assert isinstance(node, ast.Call)
        place = _PLACES.get(file.api_of_call(node))
        if place is None:
            return False
        named = [part.value for part in node.keywords if part.arg == "p"]
        share = next(iter(node.args[place : place + 1] or named), None)
        if share is not None and _may_be_whole(share, file, _DEEPEST):
            code = file.source(share)
            is_number = isinstance(share, ast.Constant)
            file.replace(share, f"{code}.0" if is_number else f"float({code})")
        return False


def _may_be_whole(node: ast.expr | None, file: FileEdit, depth: int) -> bool:
    """Whether a value may be an integer by what the file binds to its name; no where it is far."""
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.IfExp):
        return any(_may_be_whole(part, file, depth - 1) for part in (node.body, node.orelse))
    if isinstance(node, ast.Name):
        scope = scope_of(node, file)
        values = scope.values_of(node.id)
        if node.id in scope.parameters:
            assert not isinstance(scope.node, ast.Module)
            default = defaults_of(scope.node).get(node.id)
            return any(_may_be_whole(value, file, depth - 1) for value in (default, *values))
        if node.id not in scope.bound:
            values = file.tree.values_of_module.get(node.id, [])
        return any(_may_be_whole(value, file, depth - 1) for value in values)
    if not isinstance(node, ast.Attribute):
        return False
    return any(
        isinstance(target, ast.Attribute)
        and target.attr == node.attr
        and _may_be_whole(value, file, depth - 1)
        for statement in file.tree.of(ast.Assign)
        for whole in statement.targets
        for target, value in pairs_of(whole, statement.value)
    )
