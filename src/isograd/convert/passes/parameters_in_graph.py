"""`for p in net.parameters():` in a function that compiled steps run."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_WRITTEN = {
    "torch.nn.Module.parameters": "composites.parameters_in_graph",
    "torch.nn.Module.named_parameters": "composites.named_parameters_in_graph",
}
_PENALTY = """
            def penalty(net: nn.Module):
                return sum((p ** 2).sum() for p in net.parameters())
"""


class ParametersInGraph:
    """A network's parameters where a static graph asks for them."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a penalty on a network's weights",
            f"""{_PENALTY}
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x in [torch.ones(4, 2), torch.zeros(4, 2)]:
                optimizer.zero_grad()
                loss = net(x).sum() + penalty(net)
                loss.backward()
                optimizer.step()
            """,
        ),
    )
    counterexamples = (Example("nothing is compiled", _PENALTY),)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask the runtime's function, which a graph runs, too."""
        assert isinstance(node, ast.Call)
        function = file.tree.function(node)
        if getattr(function, "name", "") not in file.settings.computed:
            return False
        if node.args or node.keywords or not isinstance(node.func, ast.Attribute):
            return False
        use = file.use(node.func)
        if use is None or use.api not in _WRITTEN or not use.is_sure:
            return False
        written = file.name(_WRITTEN[use.api])
        file.replace(node, f"{written}({file.source(node.func.value)})")
        file.uses += 1
        file.converted += 1
        return True
