"""`layers.pop(0)`, `net.insert(0, layer)`: methods that MindSpore's containers have not."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.scan.values import Made

_INSTEAD = {
    "pop": "composites.pop_child",
    "insert": "composites.insert_child",
    "extend": "composites.extend_children",
}
_LACKING = {
    "torch.nn.ModuleList": frozenset(("pop",)),
    "torch.nn.Sequential": frozenset(_INSTEAD),
}


class ContainerMethods:
    """Changes of a list of modules or of a Sequential."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a layer that is taken out",
            """
            layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
            last = layers.pop(-1)
            """,
        ),
        Example(
            "layers of a network that are put in",
            """
            net = nn.Sequential(nn.Linear(2, 2))
            net.insert(0, nn.Flatten())
            net.extend([nn.ReLU()])
            """,
        ),
    )
    counterexamples = (
        Example(
            "a list of Python's",
            """
            layers = [nn.Linear(2, 2), nn.ReLU()]
            last = layers.pop(-1)
            """,
        ),
        Example(
            "what MindSpore's list has",
            """
            layers = nn.ModuleList([nn.Linear(2, 2)])
            layers.insert(0, nn.ReLU())
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a function that does it to MindSpore's container."""
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in _INSTEAD:
            return False
        owner = file.facts.owners.get(place(function))
        api = owner.api if isinstance(owner, Made) else ""
        if function.attr not in _LACKING.get(api, ()) or file.is_shaped(api):
            return False
        given = [file.source(function.value), *map(file.argument, node.args)]
        given += [f"{part.arg}={file.argument(part.value)}" for part in node.keywords if part.arg]
        layout.write_call(file, node, f"{file.name(_INSTEAD[function.attr])}({', '.join(given)})")
        file.uses += 1
        file.converted += 1
        return True
