"""`x.clamp(0, y.max())`: one bound a number and one a tensor, which MindSpore 2.10 refuses."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.convert.tree import is_none


class Bounds:
    """Calls that limit a tensor; the function itself is for other passes."""

    kinds = (ast.Call,)
    before = ("InPlace",)
    examples = (
        Example(
            "a number beside a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.clamp(x, 0, y.max())
            """,
        ),
    )
    counterexamples = (
        Example(
            "two numbers",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.clamp(x, 0, 1)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a number beside a tensor as a tensor."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func) if place(node) in file.facts.bounded else None
        if use is None:
            return False
        given = node.args[0 if use.is_member else 1 :]
        given += [part.value for part in node.keywords if part.arg in ("min", "max")]
        for bound in given:
            if isinstance(bound, (ast.Constant, ast.UnaryOp)) and not is_none(bound):
                code = f"{file.name('composites.tensor')}({file.source(bound)})"
                file.replace(bound, code)
        return False
