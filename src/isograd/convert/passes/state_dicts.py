"""`net.state_dict()` where the project reads its names: torch's names and order."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place

_METHOD = "torch.nn.Module.state_dict"


class StateDicts:
    """`for name, value in net.state_dict().items()`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a state whose names are read",
            """
            net = nn.BatchNorm1d(2)
            names = [name for name in net.state_dict() if 'running' not in name]
            """,
        ),
    )
    counterexamples = (
        Example(
            "a state that is handed on",
            """
            net, other = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
            kept = net.state_dict()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime's function, which asks what it is given."""
        assert isinstance(node, ast.Call)
        function = node.func
        if not file.settings.reads_states or not isinstance(function, ast.Attribute):
            return False
        use = file.use(function)
        if use is None or use.api != _METHOD:
            if function.attr != "state_dict" or place(function) not in file.facts.unknown:
                return False
            if not file.imported.torch:
                return False
        elif not use.is_member:
            return False
        given = "".join(f", {file.source(part)}" for part in (*node.args, *node.keywords))
        name = file.name("composites.state_dict")
        layout.write_call(file, node, f"{name}({file.argument(function.value)}{given})")
        file.uses += 1
        file.converted += 1
        return True
