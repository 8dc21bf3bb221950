"""`torch.stack([self.weight, y])`: MindSpore stacks no Parameter beside other tensors."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class StackedParameters:
    """A Parameter in a list that is stacked, beside what is none: its value, with its gradient."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "beside a tensor",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scale = nn.Parameter(torch.ones(2))

                def forward(self, x):
                    return torch.stack([self.scale, x * 2])
            """,
        ),
    )
    counterexamples = (
        Example(
            "Parameters alone",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scale = nn.Parameter(torch.ones(2))
                    self.shift = nn.Parameter(torch.zeros(2))

                def forward(self, x):
                    return x + torch.stack([self.scale, self.shift]).sum()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask each Parameter for its value."""
        assert isinstance(node, ast.Call)
        if file.api_of_call(node) != "torch.stack":
            return False
        given = [*node.args[:1], *(part.value for part in node.keywords if part.arg == "tensors")]
        parts = [part for one in given for part in getattr(one, "elts", ())]
        held = [part for part in parts if file.is_parameter(part)]
        if len(held) < len(parts):
            for part in held:
                file.replace(part, f"{file.source(part)}.value()")
        return False
