"""Numbers that are printed: `f"{loss:.4f}"`, `"{:.4f}".format(loss)`.

torch's tensors without axes take formats, MindSpore's do not.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage

_FORMATS = "tensor_formats"
#: Functions and methods of which everybody knows that they give no tensor.
_PLAIN = frozenset("float int len str round item time perf_counter get_last_lr format join".split())


class Formats:
    """A format for what may be a tensor lets tensors take formats in the whole port."""

    kinds = (ast.FormattedValue, ast.Call)
    stage = Stage.GENERAL
    after = ("Calls",)
    examples = (
        Example(
            "a number that may be a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                loss = x.mean()
                print(f'{loss:.4f}')
            """,
        ),
    )
    counterexamples = (
        Example(
            "a number by item()",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                print(f'{x.mean().item():.4f}')
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Have the generated module imported; the text stays."""
        if isinstance(node, ast.FormattedValue):
            if node.format_spec is not None and _may_be_tensor(node.value):
                file.spelling.need(_FORMATS)
        elif isinstance(node, ast.Call) and _formats(node.func):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(_may_be_tensor(value) for value in given):
                file.spelling.need(_FORMATS)
        return False


def _formats(function: ast.expr) -> bool:
    """Whether a function is `format`, or the method of a text that is not known to have none."""
    if isinstance(function, ast.Name):
        return function.id == "format"
    if not (isinstance(function, ast.Attribute) and function.attr == "format"):
        return False
    text = function.value
    return not (isinstance(text, ast.Constant) and ":" not in str(text.value))


def _may_be_tensor(value: ast.expr) -> bool:
    if isinstance(value, (ast.Constant, ast.JoinedStr, ast.Compare)):
        return False
    if isinstance(value, ast.BinOp):
        return _may_be_tensor(value.left) or _may_be_tensor(value.right)
    if isinstance(value, ast.Subscript):
        return _may_be_tensor(value.value)
    if isinstance(value, ast.Call):
        return _last_name(value.func) not in _PLAIN
    return True


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
