"""Buffers that are assigned: `self.scale = nn.Buffer(torch.ones(3))`."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage

_BUFFER = frozenset(("torch.nn.Buffer", "torch.nn.parameter.Buffer"))


class Buffers:
    """The modules of ports have torch's `register_buffer`, which takes the name first."""

    kinds = (ast.Assign,)
    stage = Stage.EARLY
    examples = (
        Example(
            "a buffer that is assigned",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scale = nn.Buffer(torch.ones(3))

                def forward(self, x):
                    return x * self.scale
            """,
        ),
    )
    counterexamples = (
        Example(
            "a registered one",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer('scale', torch.ones(3))

                def forward(self, x):
                    return x * self.scale
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the call around the value, which is for other passes."""
        assert isinstance(node, ast.Assign)
        target, made = node.targets[0], node.value
        if file.api_of_call(made) not in _BUFFER or len(node.targets) > 1:
            return False
        assert isinstance(made, ast.Call)
        given = made.args[:1]
        if not isinstance(target, ast.Attribute) or not given or isinstance(given[0], ast.Starred):
            return False
        text = file.text.original
        start, end = file.text.span(target)[0], file.text.span(made.func)[1]
        between = text[file.text.span(target)[1] : file.text.span(made.func)[0]]
        if between.strip() != "=":
            return False
        file.text.replace(start, end, f"{file.source(target.value)}.register_buffer")
        file.text.insert(text.index("(", end) + 1, f'"{target.attr}", ')
        file.forget(made.func)
        file.done.add(made)
        file.uses += 1
        file.converted += 1
        return False
