"""`layer.reset_parameters()`, which MindSpore's layers do not have."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_METHOD = "reset_parameters"


class Resets:
    """A call of the method, and the question for it, of any object but the class's own."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "all layers that can",
            """
            def f(net: nn.Module):
                for layer in net.children():
                    if hasattr(layer, 'reset_parameters'):
                        layer.reset_parameters()
            """,
        ),
        Example(
            "a layer by its class",
            """
            def reset(m):
                if isinstance(m, nn.Conv2d):
                    m.reset_parameters()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a method of the class",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = nn.Parameter(torch.zeros(2))
                    self.reset_parameters()

                def reset_parameters(self):
                    nn.init.ones_(self.weight)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Let the run find the method, or the layer's first weights."""
        assert isinstance(node, ast.Call)
        if not file.facts.apis:
            return False
        if getattr(node.func, "id", "") == "hasattr" and len(node.args) == 2:
            if getattr(node.args[1], "value", None) != _METHOD:
                return False
            code = f"{file.name('composites.can_reset')}({file.source(node.args[0])})"
        elif isinstance(node.func, ast.Attribute) and node.func.attr == _METHOD:
            owner = node.func.value
            if node.args or node.keywords or _is_own(owner, file):
                return False
            code = f"{file.name('composites.reset_parameters')}({file.source(owner)})"
        else:
            return False
        file.replace(node, code)
        return True


def _is_own(owner: ast.expr, file: FileEdit) -> bool:
    """Whether it is the object of the method around it, or `super()`."""
    if isinstance(owner, ast.Call):
        return getattr(owner.func, "id", "") == "super"
    return file.carrying.is_self(owner)
