"""`a.append(x), b.append(y)` as a statement is two statements in a class's methods."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.methods import is_in_method, is_row_of_calls
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class StatementsInTuples:
    """A tuple that nothing takes: the static graph does not run the calls in it."""

    kinds = (ast.Expr,)
    examples = (
        Example(
            "two lists that grow in one line",
            """
            class Net(nn.Module):
                def forward(self, x):
                    low, high = [], []
                    for part in x.unbind(0):
                        low.append(part.min()), high.append(part.max())
                    return torch.stack(low), torch.stack(high)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a function of the script",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                found = []
                found.append(x), found.append(y)
                return found
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write each call as a statement of its own."""
        assert isinstance(node, ast.Expr)
        if not is_row_of_calls(node) or not is_in_method(file.tree.above(node)):
            return False
        assert isinstance(node.value, ast.Tuple)
        text = file.text
        start = text.span(node)[0]
        indent = text.original[text.line_start(node.lineno) : start]
        between = f"\n{indent}" if not indent.strip() else "; "
        layout.write_statement(file, node, between.join(map(file.source, node.value.elts)))
        return True
