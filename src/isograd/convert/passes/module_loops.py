"""Loops over modules: `for m in self.modules()` is `for _, m in self.cells_and_names()`."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_MODULES = "torch.nn.Module.modules"
_CHILDREN = {
    "torch.nn.Module.children": "cells()",
    "torch.nn.Module.named_children": "name_cells().items()",
}
#: What goes through all of its argument.
_WHOLE = frozenset("list tuple set enumerate zip len sorted dict OrderedDict reversed".split())


class ModuleLoops:
    """Calls that yield modules, where a loop or a list goes through all of them."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a loop over all modules",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)
                    for m in self.modules():
                        print(m)

                def forward(self, x):
                    return self.layer(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a loop over a list",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)
                    for m in [self.layer]:
                        print(m)

                def forward(self, x):
                    return self.layer(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's own iterator where its items need nothing around them."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not use.is_member or node.args or node.keywords:
            return False
        if file.is_ported_module_member(use) or not isinstance(node.func, ast.Attribute):
            return False
        parent = file.tree.parents.get(node)
        receiver = file.source(node.func.value)
        if use.api == _MODULES and isinstance(parent, (ast.For, ast.comprehension)):
            if not isinstance(parent.target, ast.Name) or parent.iter is not node:
                return False
            file.text.insert(file.text.span(parent.target)[0], "_, ")
            file.replace(node, f"{receiver}.cells_and_names()")
        elif use.api in _CHILDREN and _goes_through(parent, node):
            file.replace(node, f"{receiver}.{_CHILDREN[use.api]}")
        else:
            return False
        file.uses += 1
        file.converted += 1
        return True


def _goes_through(parent: ast.AST | None, node: ast.Call) -> bool:
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "id", "") in _WHOLE
    return isinstance(parent, ast.Starred)
