"""`self.mask(n, x.device)` in forward: a text that the static graph knows when it compiles."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward


class DevicesGiven:
    """A tensor's device that a forward method hands to a function of the program's.

    In a static graph `x.device` is a value of the run: no `isinstance` there tells it from a dtype.
    """

    kinds = (ast.Attribute,)
    examples = (
        Example(
            "to a method",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * self.mask(x.shape[0], x.device)

                def mask(self, n, device):
                    return torch.arange(n).float().to(device)
            """,
        ),
    )
    counterexamples = (
        Example(
            "to a function of torch's",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x + torch.arange(3, device=x.device)
            """,
        ),
        Example(
            "where nothing is compiled",
            """
            def f(x: torch.Tensor, show):
                return show(x.device)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask the runtime for the text."""
        assert isinstance(node, ast.Attribute)
        use = file.use(node)
        if use is None or use.api != "torch.Tensor.device" or not use.is_sure:
            return False
        parent = file.tree.parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = file.tree.parents.get(parent)
        if not isinstance(parent, ast.Call) or parent.func is node:
            return False
        if file.use(parent.func) is not None or not is_in_forward(node, file):
            return False
        file.replace(node, f"{file.name('composites.device_of')}({file.source(node.value)})")
        file.uses += 1
        file.converted += 1
        return True
