"""`experts[i]` where i is a tensor: MindSpore's lists take Python's own numbers alone."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.located import MODULE_LISTS
from isograd.convert.passes.example import Example
from isograd.convert.passes.numpy_arrays import is_of_numpy
from isograd.convert.places import place


class PickedModules:
    """A module that a tensor, or a number of numpy's, picks from a list of modules."""

    kinds = (ast.Subscript,)
    examples = (
        Example(
            "by an element of a tensor",
            """
            layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
            for i in torch.tensor([2, 0]):
                print(layers[i])
            """,
        ),
    )
    counterexamples = (
        Example(
            "by a number",
            """
            layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
            for i in range(3):
                print(layers[i])
            """,
        ),
        Example(
            "of a list of Python's",
            """
            layers = [nn.Linear(2, 2) for _ in range(3)]
            for i in torch.tensor([2, 0]):
                print(layers[i])
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make a number of Python's of the index."""
        assert isinstance(node, ast.Subscript)
        is_tensor = place(node) in file.facts.picked
        is_number = not isinstance(node.slice, (ast.Slice, ast.Tuple))
        if not is_tensor and not (is_number and is_of_numpy(node.slice, file)):
            return False
        held = file.layers_held(node.value) or {""}
        is_list = place(node.value) in file.facts.lists or held.issubset(MODULE_LISTS)
        if is_list and "int" not in file.tree.own_names:
            file.replace(node.slice, f"int({file.argument(node.slice)})")
        return False
