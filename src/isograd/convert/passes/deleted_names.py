"""`del y` in a class's methods, which no static graph has, is left out of compiled projects."""

from __future__ import annotations

import ast

from isograd.convert.analysis.methods import is_in_method, unbinds_own_names
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


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
    )
    counterexamples = (
        Example(
            "a network that nothing compiles",
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

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the statement out where a step is compiled; elsewhere it frees memory."""
        assert isinstance(node, ast.Delete)
        function = file.tree.function(node)
        if not file.settings.compiles_steps or not is_in_method(file.tree.above(node)):
            return False
        if function is None or not unbinds_own_names(node, function):
            return False
        file.leave_out(node)
        return True
