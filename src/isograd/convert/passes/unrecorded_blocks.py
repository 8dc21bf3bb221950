"""`with torch.no_grad():` in forward: what the block computes has no gradient in a graph either."""

from __future__ import annotations

import ast

from isograd.convert.analysis.fresh_values import fresh_names
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward

_SWITCHES = ("torch.no_grad", "torch.inference_mode")


class UnrecordedBlocks:
    """A block of new values, which the static graph enters; its names are stopped behind it."""

    kinds = (ast.With,)
    examples = (
        Example(
            "positions",
            """
            class Net(nn.Module):
                def forward(self, x):
                    with torch.no_grad():
                        p = torch.arange(x.shape[1]).float()
                    return x * p
            """,
        ),
        Example(
            "a scale that is taken for a constant",
            """
            class Net(nn.Module):
                def forward(self, x):
                    with torch.no_grad():
                        y = x * 2
                        scale = torch.max(y)
                    return x / scale
            """,
        ),
    )
    counterexamples = (
        Example(
            "the tensor itself keeps its gradient",
            """
            class Net(nn.Module):
                def forward(self, x):
                    with torch.no_grad():
                        y = x
                    return x * y
            """,
        ),
        Example(
            "what runs as it is written",
            """
            def f(x: torch.Tensor):
                with torch.no_grad():
                    y = torch.relu(x)
                return x * y
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a switch that a graph passes over, and stop the gradient of what is read behind."""
        assert isinstance(node, ast.With)
        names = stopped_names(node, file)
        if names is None:
            return False
        call = node.items[0].context_expr
        file.replace(call, f"{file.name('composites.unrecorded_block')}()")
        text = file.text
        last = node.body[-1]
        start = text.line_start(node.lineno)
        indent = text.original[start : text.span(node)[0]]
        assert last.end_lineno is not None
        end = text.line_end(last.end_lineno)
        stopped = file.name("composites.unlearned")
        for name in names:
            text.insert(end, f"{text.newline}{indent}{name} = {stopped}({name})")
        return False


def stopped_names(node: ast.With, file: FileEdit) -> list[str] | None:
    """The names whose gradient stops behind a block; None for a block that stays as it is."""
    function = file.tree.function(node)
    if function is None or not is_in_forward(node, file) or len(node.items) != 1:
        return None
    item = node.items[0]
    call = item.context_expr
    if not isinstance(call, ast.Call) or call.args or call.keywords or item.optional_vars:
        return None
    if file.named.get(call.func, "") not in _SWITCHES:
        return None
    return fresh_names(node, function, file)
