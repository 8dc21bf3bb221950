"""`del y` in forward, which no static graph has, is left out; of compiled projects in methods."""

from __future__ import annotations

import ast

from isograd.convert.analysis.methods import is_in_method, unbinds_own_names
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward


class DeletedNames:
    """A name that a pass no longer needs; a compiled one keeps no values by names."""

    kinds = (ast.Delete,)
    examples = (
        Example(
            "in the forward method of a network with compiled steps",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 1)

                def forward(self, x):
                    y = self.layer(x)
                    z = y * 2
                    del y
                    return z


            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            x = torch.ones(1, 2)
            for _ in range(3):
                optimizer.zero_grad()
                loss = net(x).sum()
                loss.backward()
                optimizer.step()
            """,
        ),
        Example(
            "in a forward method that the port's user may compile",
            """
            class Net(nn.Module):
                def forward(self, x):
                    y = torch.relu(x)
                    z = y * 2
                    del y
                    return z
            """,
        ),
    )
    counterexamples = (
        Example(
            "a function that nothing compiles",
            """
            def f(x: torch.Tensor):
                y = torch.relu(x)
                z = y * 2
                del y
                return z
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the statement out where a graph may take it; elsewhere it frees memory."""
        assert isinstance(node, ast.Delete)
        function = file.tree.function(node)
        is_in_step = file.settings.compiles_steps and is_in_method(file.tree.above(node))
        if not is_in_step and not is_in_forward(node, file):
            return False
        if function is None or not unbinds_own_names(node, function):
            return False
        file.leave_out(node)
        return True
