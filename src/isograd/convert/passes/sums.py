"""Sums of what a mask has selected, which may be nothing."""

from __future__ import annotations

import ast
import dataclasses

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.located import place
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import RAGGED

#: Of an empty tensor MindSpore's own sum is whatever stood in the memory (2.10, CPU).
_TEMPLATE = "composites.total({0}{{, dim=dim}}{{, keepdim=keepdim}}{{, dtype=dtype}})"


class SumsOfSelections:
    """`loss[mask].sum()`."""

    kinds = (ast.Call,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the sum that is 0 of nothing."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None:
            return False
        receiver, name = "", "{input}"
        if use.api == "torch.Tensor.sum" and use.owner is RAGGED:
            assert isinstance(node.func, ast.Attribute)
            receiver, name = file.argument(node.func.value), "{self}"
        elif use.api != "torch.sum" or place(node) not in file.facts.selected:
            return False
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
