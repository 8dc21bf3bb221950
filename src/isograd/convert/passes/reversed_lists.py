"""`reversed(features)` in a forward pass, which no static graph has, is `features[::-1]`."""

from __future__ import annotations

import ast

from isograd.convert.analysis.own_lists import reversed_lists
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import may_be_compiled


class ReversedLists:
    """What goes backwards through a list of its own function."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a list backwards in a pass",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)

                def forward(self, x):
                    found = [x, self.layer(x)]
                    for part in reversed(found):
                        x = x + part
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "a list backwards outside of one",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                for part in reversed([x, y]):
                    x = x + part
                return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a slice where the argument can be nothing but a list."""
        assert isinstance(node, ast.Call)
        if getattr(node.func, "id", "") != "reversed" or not may_be_compiled(node, file):
            return False
        function = file.tree.function(node)
        if function is None or node not in reversed_lists(function):
            return False
        file.replace(node, f"{file.source(node.args[0])}[::-1]")
        return True
