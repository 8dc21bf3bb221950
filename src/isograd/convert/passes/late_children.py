"""Parameters are named by their place: also those of cells that a container gets when it has one.

A Cell names the parameters of what is assigned to it; what is put into `self.blocks` later has
names without `blocks.`, so that two containers have parameters of one name.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class

_PUTS = frozenset("append extend insert add_module register_module".split())


class LateChildren:
    """Constructors that put modules into what `self` holds already."""

    kinds = (ast.ClassDef,)
    examples = (
        Example(
            "layers that a list gets later",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.ModuleList()
                    for _ in range(2):
                        self.blocks.append(nn.Linear(2, 2))

                def forward(self, x):
                    for block in self.blocks:
                        x = block(x)
                    return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "layers that a list is made of",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])

                def forward(self, x):
                    for block in self.blocks:
                        x = block(x)
                    return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Name the parameters anew at the constructor's end."""
        assert isinstance(node, ast.ClassDef)
        if file.is_shaped("torch.nn.Module") or not is_module_class(node, file):
            return False
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if not made or not any(_puts_late(part) for part in file.tree.walked(node)):
            return False
        last = made[-1].body[-1]  # type: ignore[attr-defined]
        first = made[-1].body[0]  # type: ignore[attr-defined]
        if isinstance(last, (ast.Return, ast.Raise)) or last.end_lineno is None:
            return False
        if first.lineno == made[-1].lineno:
            return False  # on the line of its `def`
        text = file.text
        start = text.line_start(first.lineno)
        indent = text.original[start : start + first.col_offset]
        at = text.line_end(last.end_lineno)
        text.insert(at, f"{text.newline}{indent}self.update_parameters_name()")
        return False


def _puts_late(node: ast.AST) -> bool:
    """`self.blocks.append(…)`, `self.add_module(…)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    if node.func.attr not in _PUTS:
        return False
    if isinstance(owner, ast.Name):
        return owner.id == "self"
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        owner = owner.value
    return getattr(owner, "id", "") == "self"
