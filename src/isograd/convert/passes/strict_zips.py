"""`zip(…, strict=True)` in a class's methods, which no static graph has, is the runtime's."""

from __future__ import annotations

import ast

from isograd.convert.analysis.methods import is_in_method
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class StrictZips:
    """`zip` that compares the lengths, where a pass may be compiled."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "layers beside each other in a pass",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.ups = nn.ModuleList([nn.Linear(2, 2)])

                def forward(self, x, skips):
                    for up, skip in zip(self.ups, skips, strict=True):
                        x = up(x) + skip
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "a function of the script",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return [a + b for a, b in zip(x, y, strict=True)]
            """,
        ),
        Example(
            "a zip that stops at the shortest",
            """
            class Net(nn.Module):
                def forward(self, x, skips):
                    return [a + b for a, b in zip(x, skips, strict=False)]
            """,
        ),
        Example(
            "a zip of the file's own",
            """
            def zip(*rows, strict):
                return rows[0]

            class Net(nn.Module):
                def forward(self, x):
                    return [a for a in zip(x, strict=True)]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime's function, which compares the lengths and then calls plain `zip`."""
        assert isinstance(node, ast.Call)
        if not _is_strict(node) or "zip" in file.tree.own_names:
            return False
        if not is_in_method(file.tree.above(node)):
            return False
        rows = ", ".join(file.source(row) for row in node.args)
        file.replace(node, f"{file.name('composites.strict_zip')}({rows})")
        return True


def _is_strict(call: ast.Call) -> bool:
    if getattr(call.func, "id", "") != "zip" or len(call.keywords) != 1:
        return False
    keyword = call.keywords[0]
    value = keyword.value
    return keyword.arg == "strict" and isinstance(value, ast.Constant) and value.value is True
