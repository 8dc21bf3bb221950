"""`torch.where(mask, x, y)` of a mask of bytes, which MindSpore's `where` refuses."""

from __future__ import annotations

import ast
import re

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

#: What makes bytes; torch takes nothing but them and truth values for conditions.
_BYTES = re.compile(r"\buint8\b|\.byte\(|\bByteTensor\b")


class ByteConditions:
    """The condition of `where`, in a file that makes bytes; the call is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a mask of bytes",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                mask = (x > 0).to(torch.uint8)
                return torch.where(mask, x, y)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a comparison",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                mask = (x > 0).to(torch.uint8)
                return torch.where(x > y, x, mask * y)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the condition as truth values."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.api not in ("torch.where", "torch.Tensor.where"):
            return False
        if not _BYTES.search(file.text.original) or len(node.args) + len(node.keywords) < 2:
            return False
        named = [part.value for part in node.keywords if part.arg == "condition"]
        condition = next(iter([*named, *node.args]), None)
        if condition is None or isinstance(condition, (ast.Compare, ast.Starred)):
            return False
        code = layout.closed(file.source(condition))
        file.replace(condition, f"{code}.astype({file.name('ms.bool_')})")
        return False
