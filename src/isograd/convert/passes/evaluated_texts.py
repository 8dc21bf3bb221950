"""`eval(name)`: a text that names a layer means MindSpore's in a port, by torch's arguments."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example

_NETWORKS = "torch.nn"
_MESSAGE = (
    "eval reads a text in the port's names: of 'nn.Conv2d' it makes MindSpore's layer, whose "
    "arguments and defaults are not torch's"
)
_ADVICE = (
    "If a text names a layer, look it up in a dictionary of classes, as in "
    "{'nn.Conv2d': nn.Conv2d}[name], and convert again: classes by their names are converted."
)
_WORD = re.compile(r"\w+")


class EvaluatedTexts:
    """What a text means is not converted; it is reported where a file has torch's layers."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a class by a text",
            """
            def build(name, arguments):
                return eval(name)(*arguments)


            layer = nn.Linear(2, 2)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a text without torch's names",
            """
            layer = nn.Linear(2, eval('1 + 1'))
            """,
        ),
        Example(
            "inference",
            """
            layer = nn.Linear(2, 2)
            layer.eval()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report a text that may name a layer; the call stays as it is."""
        assert isinstance(node, ast.Call)
        if getattr(node.func, "id", "") != "eval" or "eval" in file.tree.own_names:
            return False
        names = {
            name
            for name, api in file.imported.torch.items()
            if api == _NETWORKS or api.startswith(f"{_NETWORKS}.")
        }
        if not names or not node.args:
            return False
        text = node.args[0]
        if not isinstance(text, ast.Constant):
            may_name = True
        else:
            may_name = not names.isdisjoint(_WORD.findall(str(text.value)))
        if may_name:
            file.finding(node, "evaluated-text", _MESSAGE, _ADVICE, level=Level.LOOK)
        return False
