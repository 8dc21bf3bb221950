"""Slices with steps along several axes: MindSpore's own crash in their gradient."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit


class Subscripts:
    """`x[..., 0::2, 1::2, :]`."""

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements along one axis after the other."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.slice, ast.Tuple):
            return False
        steps = [part for part in node.slice.elts if isinstance(part, ast.Slice) and part.step]
        if len(steps) < 2:
            return False
        start, end = file.text.span(node)
        index = file.text.source(file.text.span(node.value)[1], end)
        strided, numpy = file.name("composites.strided"), file.name("np.s_")
        file.text.replace(start, end, f"{strided}({file.source(node.value)}, {numpy}{index})")
        file.uses += 1
        file.converted += 1
        return True
