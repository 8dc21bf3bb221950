"""`self.weights[0]` of a ParameterList: a static graph takes a cell's element for a constant."""

from __future__ import annotations

import ast

from isograd.convert.analysis.parameter_containers import PARAMETER_CONTAINERS, reads_elements
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class ParameterContainers:
    """Elements of a ParameterList or ParameterDict of which the class shows that it is one."""

    kinds = (ast.Attribute,)
    examples = (
        Example(
            "a list, by places and in a loop",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scales = nn.ParameterList([nn.Parameter(torch.ones(2))] * 3)

                def forward(self, x):
                    for scale in self.scales:
                        x = x * scale
                    return x + self.scales[0]
            """,
        ),
    )
    counterexamples = (
        Example(
            "what is asked of the list itself",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scales = nn.ParameterList([nn.Parameter(torch.ones(2))] * 3)

                def forward(self, x):
                    return x * len(self.scales)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask for the elements by a method, which a graph looks into."""
        assert isinstance(node, ast.Attribute)
        if PARAMETER_CONTAINERS.isdisjoint(file.apis) or not isinstance(node.ctx, ast.Load):
            return False
        if not reads_elements(node, file.tree):
            return False
        held = file.layers_held(node)
        if held and held <= PARAMETER_CONTAINERS:
            file.replace(node, f"{file.source(node)}.elements()")
        return False
