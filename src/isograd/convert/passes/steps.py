"""Names of compiled training steps, as the file spells MindSpore's packages."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.training.names import SPELLED


class StepNames:
    """`_isograd_jit` in a loop that was written anew is `ms.jit`."""

    kinds = (ast.Name,)
    is_early = True

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Spell the name; others are left."""
        assert isinstance(node, ast.Name)
        if node.id not in SPELLED:
            return False
        file.replace(node, file.name(SPELLED[node.id]))
        return True
