"""Names of compiled training steps, as the file spells MindSpore's packages."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.training.names import SPELLED


class StepNames:
    """`_isograd_jit` in a loop that was written anew is `ms.jit`."""

    kinds = (ast.Name,)
    stage = Stage.EARLY
    examples = (
        Example(
            "a training loop that is written as a compiled step",
            """
            net = nn.Linear(2, 2)
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            for x, y in batches():
                loss = ((net(x) - y) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a loop without training",
            """
            net = nn.Linear(2, 2)
            for x, y in batches():
                print(net(x))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Spell the name; others are left."""
        assert isinstance(node, ast.Name)
        if node.id not in SPELLED:
            return False
        file.replace(node, file.name(SPELLED[node.id]))
        return True
