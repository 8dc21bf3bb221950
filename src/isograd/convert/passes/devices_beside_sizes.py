"""`b, n, device = *x.shape, x.device`: the static graph knows none of what stands in that tuple."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import names_of


class DevicesBesideSizes:
    """A tensor's device that is bound together with sizes."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "sizes and the device",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns, device = *x.shape, x.device
                return y.reshape(columns, rows), torch.ones(rows, device=device)
            """,
        ),
    )
    counterexamples = (
        Example(
            "sizes alone",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns = x.shape
                return y.reshape(columns, rows)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind the device on a line of its own."""
        assert isinstance(node, ast.Assign)
        target, value = node.targets[0], node.value
        if len(node.targets) > 1 or not _is_pair(target, value, file):
            return False
        assert isinstance(target, ast.Tuple)
        assert isinstance(value, ast.Tuple)
        names = [file.source(part) for part in target.elts]
        values = [file.source(part) for part in value.elts]
        taken = ", ".join(values[:-1])
        if len(value.elts) == 2 and isinstance(value.elts[0], ast.Starred):
            taken = file.source(value.elts[0].value)
            names = [f"{names[0]},", names[1]] if len(names) == 2 else names
        start, text = file.text.span(node)[0], file.text
        indent = text.original[text.line_start(node.lineno) : start]
        if indent.strip():
            return False  # behind another statement
        code = f"{', '.join(names[:-1])} = {taken}{text.newline}{indent}{names[-1]} = {values[-1]}"
        layout.write_statement(file, node, code)
        return False


def _is_pair(target: ast.expr, value: ast.expr, file: FileEdit) -> bool:
    """Whether the last of several names takes a device, which may be read behind the others."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return False
    last = value.elts[-1] if len(value.elts) > 1 else None
    if not isinstance(last, ast.Attribute) or last.attr != "device" or last in file.named:
        return False
    bound = [part for part in target.elts if isinstance(part, ast.Name)]
    if len(bound) < len(target.elts) or len(bound) < 2:
        return False
    return {part.id for part in bound[:-1]}.isdisjoint(names_of(last))
