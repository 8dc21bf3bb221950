"""`isinstance(layer, norm)`, where a variable holds a class that makes MindSpore's layers."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place


class Instances:
    """A question for an instance of a class that only the run shows."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a class that a parameter brings, which is also asked whether it is one",
            """
            def count(net, norm):
                assert isinstance(norm, type)
                return sum(isinstance(m, norm) for m in (*net.modules(), norm(2)))


            print(count(nn.Sequential(nn.BatchNorm1d(2), nn.ReLU()), nn.BatchNorm1d))
            """,
        ),
    )
    counterexamples = (
        Example(
            "a class by its own name",
            """
            def is_norm(m):
                return isinstance(m, nn.BatchNorm1d)
            """,
        ),
        Example(
            "no class is asked whether it is one",
            """
            def count(net, norm):
                return sum(isinstance(m, norm) for m in net)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask a function of the runtime, which knows the classes of the port."""
        assert isinstance(node, ast.Call)
        layers = file.settings.layers
        if not (layers.asks_for_classes and layers.asks_for_instances):
            return False
        if place(node) in file.facts.asking.of_variables:
            file.replace(node.func, file.name("composites.is_instance"))
        return False
