"""`backup[name] = p.data` where `p.data` gets other values later, and steps are compiled."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward

_DATA = "torch.Tensor.data"
_HOLDERS = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Dict, ast.List, ast.Tuple, ast.ListComp,
    ast.GeneratorExp, ast.DictComp, ast.Return, ast.Yield, ast.IfExp,
)  # fmt: skip
_SWAP = """
            class Average:
                def __init__(self, net: nn.Module):
                    self.net, self.kept = net, {}
                    self.shadow = {n: p.data.clone() for n, p in net.named_parameters()}

                def apply(self):
                    for name, p in self.net.named_parameters():
                        self.kept[name] = p.data
                        p.data = self.shadow[name]
"""
_TRAINED = """
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            average = Average(net)
            for _ in range(3):
                optimizer.zero_grad()
                loss = net(torch.ones(4, 2)).sum()
                loss.backward()
                optimizer.step()
            average.apply()
"""


class KeptData:
    """Data that is kept where the file gives Parameters other data.

    A compiled step holds a Parameter's memory, so that other data goes into it: what was read
    before has to be known.
    """

    kinds = (ast.Attribute,)
    after = ("WrittenData",)
    examples = (Example("an average that takes a network's place", f"{_SWAP}\n{_TRAINED}"),)
    counterexamples = (Example("nothing is compiled", _SWAP),)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Read the data by the runtime's function, which keeps its values."""
        assert isinstance(node, ast.Attribute)
        if not file.settings.compiles_steps or not isinstance(node.ctx, ast.Load):
            return False
        use = file.use(node)
        if use is None or use.api != _DATA or not use.is_sure:
            return False
        if not _is_kept(node, file) or is_in_forward(node, file) or not _gives_data(file):
            return False
        file.replace(node, f"{file.name('composites.data_read')}({file.source(node.value)})")
        file.uses += 1
        file.converted += 1
        return True


def _is_kept(node: ast.expr, file: FileEdit) -> bool:
    """Whether a value is bound, put into something, returned, or given to what is not torch's."""
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.keyword):
        parent = file.tree.parents.get(parent)
    if isinstance(parent, ast.Call):
        return parent.func is not node and file.use(parent.func) is None
    return isinstance(parent, _HOLDERS)


def _gives_data(file: FileEdit) -> bool:
    """Whether a file assigns to something's `data`."""
    return any(
        isinstance(node.ctx, ast.Store) and node.attr == "data"
        for node in file.tree.of(ast.Attribute)
    )
