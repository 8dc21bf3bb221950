"""Sums of what a mask has selected, which may be nothing."""

from __future__ import annotations

import ast
import dataclasses

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.knowledge.rewrite import NotRewritten

#: Of an empty tensor MindSpore's own sum is whatever stood in the memory (2.10, CPU).
_TEMPLATE = "composites.total({0}{{, dim=dim}}{{, keepdim=keepdim}}{{, dtype=dtype}})"


class SumsOfSelections:
    """`loss[mask].sum()`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "the sum of what a mask takes",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[y > 0].sum()
            """,
        ),
    )
    counterexamples = (
        Example(
            "the sum of a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.sum()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the sum that is 0 of nothing."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or place(node) not in file.facts.selected:
            return False
        receiver, name = "", "{input}"
        if use.is_member:
            assert isinstance(node.func, ast.Attribute)
            receiver, name = file.argument(node.func.value), "{self}"
        entry, call = file.entry(use.api), file.call(node, receiver)
        if entry is None or isinstance(call, NotRewritten):
            return False
        template = _TEMPLATE.format(name)
        result = file.rewritten(dataclasses.replace(entry, rewrite=template, others=()), call)
        if isinstance(result, NotRewritten):
            return False
        layout.write(file, node, result.code)
        file.uses += 1
        file.converted += 1
        return True
