"""`self.head.fc = layer`, where `self.head` is a Sequential: torch's runs all of its children."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.scan.values import Made

_SEQUENTIAL = "torch.nn.Sequential"


class SequentialAttributes:
    """MindSpore's SequentialCell skips a child that is set as an attribute, without a word."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "a layer behind those of the constructor",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.head = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
                    self.head.fc = nn.Linear(4, 2)

                def forward(self, x):
                    return self.head(x)
            """,
        ),
        Example(
            "a network by its name",
            """
            net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
            net.fc = nn.Linear(4, 2)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a number",
            """
            net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
            net.depth = 2
            """,
        ),
        Example(
            "a layer of a class of the project",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(4, 2)

                def forward(self, x):
                    return self.fc(x)


            net = Net()
            net.fc = nn.Linear(4, 3)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a function that has the child run, too."""
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return False
        if isinstance(node.value, ast.Constant) or not _is_sequential(target.value, file):
            return False
        function = file.name("composites.set_child")
        parts = (file.source(target.value), repr(target.attr), file.argument(node.value))
        layout.write_statement(file, node, f"{function}({', '.join(parts)})")
        return False


def _is_sequential(owner: ast.expr, file: FileEdit) -> bool:
    """Whether an attribute of `self`, or a name of the scope, holds torch's own Sequential."""
    if isinstance(owner, ast.Attribute) and getattr(owner.value, "id", "") == "self":
        kind = file.tree.owner(owner)
        info = None if kind is None else file.class_info(kind)
        held = None if info is None else info.attributes.get(owner.attr)
        return isinstance(held, Made) and held.api == _SEQUENTIAL
    if not isinstance(owner, ast.Name):
        return False
    values = scope_of(owner, file).values_of(owner.id)
    return bool(values) and all(
        isinstance(value, ast.Call) and file.api_of_call(value) == _SEQUENTIAL for value in values
    )
