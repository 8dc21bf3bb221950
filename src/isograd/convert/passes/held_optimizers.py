"""`self.optimizer = Adam(self.parameters())` in a network: torch's optimizers are no modules."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.scan.values import ClassInfo, Instance, Made

_SCALERS = frozenset(("torch.amp.GradScaler", "torch.cuda.amp.GradScaler"))


class HeldOptimizers:
    """An optimizer that a network holds is no part of it.

    MindSpore's optimizers are cells: as an attribute, one's learning rate and states are parameters
    of the network, which loops over its parameters fill and average, and its state_dict holds.
    """

    kinds = (ast.Assign,)
    examples = (
        Example(
            "an optimizer of a network's own",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)
                    self.optimizer = torch.optim.Adam(self.parameters())

                def forward(self, x):
                    return self.layer(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "an optimizer of a class that is no network",
            """
            class Agent:
                def __init__(self, net: nn.Module):
                    self.optimizer = torch.optim.Adam(net.parameters())
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Set it past the cell, which has it as any other attribute."""
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return False
        owner = file.tree.owner(node)
        if getattr(target.value, "id", "") != "self" or owner is None:
            return False
        info = file.class_info(owner)
        if info is None or not file.is_module_class(owner) or not _is_optimizer(info, target.attr):
            return False
        value = file.argument(node.value)
        layout.write_statement(file, node, f"object.__setattr__(self, {target.attr!r}, {value})")
        return False


def _is_optimizer(info: ClassInfo, name: str) -> bool:
    held = info.attributes.get(name)
    if isinstance(held, Instance):
        return _derives(held.of)
    return isinstance(held, Made) and _is_optimizers(held.api)


def _derives(info: ClassInfo) -> bool:
    """Whether a class of the project is an optimizer."""
    return any(
        _derives(base) if isinstance(base, ClassInfo) else _is_optimizers(getattr(base, "name", ""))
        for base in info.bases
    )


def _is_optimizers(api: str) -> bool:
    """Whether an API is an optimizer: a class of `torch.optim` itself, or a scaler."""
    return api in _SCALERS or api.rpartition(".")[0] == "torch.optim"
