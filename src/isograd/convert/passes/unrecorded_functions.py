"""`@torch.no_grad()` goes away where nothing computed stays but the data of layers."""

from __future__ import annotations

import ast

from isograd.convert.analysis.unrecorded_functions import MODES, Kept
from isograd.convert.file import FileEdit
from isograd.convert.passes.decorators import leave_out
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage

_NO_GRAD = frozenset(
    ("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")
)


class UnrecordedFunctions:
    """Functions that set modes, and those that fuse layers into new ones."""

    kinds = (ast.FunctionDef,)
    stage = Stage.EARLY
    examples = (
        Example(
            "layers that become one",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.c, self.bn = nn.Linear(2, 2), nn.BatchNorm1d(2)

                @torch.no_grad()
                def fuse(self):
                    w = self.bn.weight / (self.bn.running_var + self.bn.eps) ** 0.5
                    m = nn.Linear(2, 2)
                    m.weight.data.copy_(self.c.weight * w[:, None])
                    return m
            """,
        ),
        Example(
            "a cache that training clears",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.cache = {}

                @torch.no_grad()
                def train(self, mode=True):
                    super().train(mode)
                    if mode and self.cache:
                        self.cache = {}
            """,
        ),
    )
    counterexamples = (
        Example(
            "a tensor that is returned",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.c = nn.Linear(2, 2)

                @torch.no_grad()
                def scaled(self):
                    w = self.c.weight * 2
                    return w
            """,
        ),
        Example(
            "a Parameter that is written in place",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.c = nn.Linear(2, 2)

                @torch.no_grad()
                def halve(self):
                    self.c.weight.copy_(self.c.weight / 2)
            """,
        ),
        Example(
            "a mode that computes",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.c = nn.Linear(2, 2)

                @torch.no_grad()
                def train(self, mode=True):
                    super().train(mode)
                    self.w = self.c.weight * 2
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave out the decorator."""
        assert isinstance(node, ast.FunctionDef)
        if len(node.decorator_list) != 1:
            return False
        switch = node.decorator_list[0]
        if isinstance(switch, ast.Call) and (switch.args or switch.keywords):
            return False
        named = switch.func if isinstance(switch, ast.Call) else switch
        if file.named.get(named, "") in _NO_GRAD and _is_the_same(node, file):
            leave_out(switch, file)
        return False


def _is_the_same(node: ast.FunctionDef, file: FileEdit) -> bool:
    if node.name in MODES and not file.settings.computes_in_modes:
        return file.carrying.owner(node) is not None
    return Kept(lambda part: _api_of(part, file)).is_nothing(node)


def _api_of(node: ast.AST, file: FileEdit) -> str:
    use = file.use(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return "" if use is None else use.api
