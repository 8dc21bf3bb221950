"""`z.imag = x`, which changes a tensor of complex numbers; MindSpore's parts are copies."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import written_place
from isograd.convert.passes.example import Example

_PARTS = frozenset(("torch.Tensor.real", "torch.Tensor.imag"))


class WrittenParts:
    """Assignments to the real or the imaginary part."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "the imaginary part",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = torch.complex(x, y)
                z.imag = x
                return z
            """,
        ),
    )
    counterexamples = (
        Example(
            "the imaginary part, read",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = torch.complex(x, y).imag
                return z
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Put the part beside the other one."""
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return False
        use = file.use(target)
        if use is None or not use.is_member or use.api not in _PARTS:
            return False
        given = f'{written_place(target.value, file)}, "{target.attr}", {file.argument(node.value)}'
        layout.write_statement(file, node, f"{file.name('composites.set_part')}({given})")
        file.uses += 1
        file.converted += 1
        return True
