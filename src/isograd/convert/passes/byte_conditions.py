"""`torch.where(mask, x, y)` of a mask of bytes, which MindSpore's `where` refuses."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import imported_from

#: What makes bytes; torch takes nothing but them and truth values for conditions.
_BYTES = frozenset(
    ("torch.uint8", "torch.Tensor.byte", "torch.ByteTensor", "torch.cuda.ByteTensor")
)


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
        if len(node.args) + len(node.keywords) < 2 or not _makes_bytes(file):
            return False
        named = [part.value for part in node.keywords if part.arg == "condition"]
        condition = next(iter([*named, *node.args]), None)
        if condition is None or isinstance(condition, (ast.Compare, ast.Starred)):
            return False
        code = layout.closed(file.source(condition))
        file.replace(condition, f"{code}.astype({file.name('ms.bool_')})")
        return False


def _makes_bytes(file: FileEdit) -> bool:
    """Whether a file names bytes of torch's or numpy's."""
    facts = file.facts
    if not _BYTES.isdisjoint({*facts.apis, *(member.api for member in facts.members.values())}):
        return True
    names = imported_from(file.tree, ("numpy",))
    return any(
        part.attr == "uint8" and getattr(part.value, "id", "") in names
        for part in file.tree.of(ast.Attribute)
    )
