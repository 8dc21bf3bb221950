"""`rnn.flatten_parameters()`: weights to where a GPU's library wants them; MindSpore lacks it."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.layers import RECURRENT
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class FlattenedParameters:
    """`self.rnn.flatten_parameters()`, which changes no value."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a recurrent layer of a network",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.rnn = nn.GRU(2, 3)

                def forward(self, x):
                    self.rnn.flatten_parameters()
                    return self.rnn(x)[0]
            """,
        ),
        Example(
            "a layer that is not known",
            """
            def flatten(layers):
                for layer in layers:
                    layer.flatten_parameters()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a method of the class's own",
            """
            class Net(nn.Module):
                def flatten_parameters(self):
                    return 1

                def forward(self, x):
                    return x * self.flatten_parameters()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave it out; where the class is not known, what runs asks for the method."""
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "flatten_parameters":
            return False
        owner = function.value
        called = owner.func if isinstance(owner, ast.Call) else owner
        is_own = getattr(called, "id", "") in ("self", "cls", "super")
        if node.args or node.keywords or is_own or not file.imported.torch:
            return False
        held = file.layers_held(owner)
        statement = file.tree.parents.get(node)
        if held and held <= RECURRENT and isinstance(statement, ast.Expr):
            file.leave_out(statement)
            return True
        call = file.name("composites.flatten_parameters")
        layout.write_call(file, node, f"{call}({file.argument(owner)})")
        return True
