"""`lstm(x, states)`: MindSpore's LSTM takes a tuple of states, torch's a list, too."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.layers import bound_locally
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none

_LSTM = "torch.nn.LSTM"


class RecurrentStates:
    """States that an LSTM is given, of which nothing shows that they are a tuple."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "states that are an argument",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.lstm = nn.LSTM(4, 5)

                def forward(self, x, states):
                    return self.lstm(x, states)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a tuple, and none",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.lstm = nn.LSTM(4, 5)

                def forward(self, x, h, c):
                    states = (h, c)
                    return self.lstm(x, states), self.lstm(x, (h, c)), self.lstm(x, None)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make a tuple of a list where one may be given."""
        assert isinstance(node, ast.Call)
        if _LSTM not in file.apis or file.settings.layers.is_runtime(_LSTM):
            return False
        named = [part.value for part in node.keywords if part.arg == "hx"]
        given = [*node.args[1:2], *named]
        states = given[0] if given else None
        if (
            states is None
            or isinstance(states, ast.Starred)
            or file.layers_held(node.func) != {_LSTM}
        ):
            return False
        if not _is_tuple(states, file):
            made = f"{file.name('composites.states_of_lstm')}({file.argument(states)})"
            layout.write(file, states, made)
        return False


def _is_tuple(states: ast.expr, file: FileEdit) -> bool:
    """Whether it is a tuple or None, as far as the function says it."""
    if isinstance(states, ast.Name):
        values = bound_locally(states, file.tree)
        return bool(values) and all(isinstance(one, ast.Tuple) or is_none(one) for one in values)
    return isinstance(states, ast.Tuple) or is_none(states)
