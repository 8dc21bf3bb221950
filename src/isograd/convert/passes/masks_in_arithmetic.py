"""What MindSpore 2.10 does not do with masks.

`mask * 1` and `mask + mask`, which a graph takes for the mask, or refuses; `mask.max()`.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.boolean_gradients import is_boolean, uses_of_masks
from isograd.convert.passes.example import Example
from isograd.convert.passes.masks import is_mask
from isograd.convert.passes.reach_of_writes import may_be_compiled, own_values_of
from isograd.convert.places import place
from isograd.scan.values import Tensor

#: What the greatest and the least of a mask say.
_EXTREMES = {"max": "ops.any", "min": "ops.all"}
_HOMES = ("torch", "torch.Tensor")


class MasksInArithmetic:
    """A mask that is made a number, or joined with another one, where a pass may be compiled."""

    kinds = (ast.BinOp,)
    before = ("NumbersBesideTensors",)
    examples = (
        Example(
            "a mask times one",
            """
            class Net(nn.Module):
                def forward(self, x):
                    keep = x > 0
                    return 1 * keep - (keep[0] * 1)
            """,
        ),
        Example(
            "the sum of two",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * ((x > 0) + (x < -1))
            """,
        ),
    )
    counterexamples = (
        Example(
            "conditions of numbers",
            """
            class Net(nn.Module):
                def forward(self, x):
                    return x * ((x.shape[0] > 2) * 1 + (x.dim() > 1))
            """,
        ),
        Example(
            "what runs as it is written",
            """
            def f(x: torch.Tensor):
                return (x > 0) * 1, (x > 0) + (x < -1)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Cast a mask to integers where it is multiplied by one; write a sum as an `or`."""
        assert isinstance(node, ast.BinOp)
        values = file.facts.operands.get(place(node), ())
        if not isinstance(node.op, (ast.Add, ast.Mult)) or not may_be_compiled(node, file):
            return False
        sides = list(zip((node.left, node.right), values, strict=False))
        masks = [one for one, value in sides if isinstance(value, Tensor) and _is_mask(one, file)]
        others = [one for one in (node.left, node.right) if one not in masks]
        written = ", ".join(map(file.argument, masks))
        if isinstance(node.op, ast.Add) and not others:
            file.replace(node, f"{file.name('ops.logical_or')}({written})")
            return True
        if isinstance(node.op, ast.Mult) and len(others) == 1 and _is_one(others[0]):
            alone = f"{file.name('ops.stop_gradient')}({written})"  # as a cast does in torch
            file.replace(node, f"{file.name('ops.cast')}({alone}, {file.name('ms.int64')})")
            return True
        return False


class ExtremesOfMasks:
    """The greatest and the least of a mask, which MindSpore 2.10 refuses on a CPU."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "whether any, or all, are true",
            """
            def f(x: torch.Tensor):
                bad = torch.isnan(x)
                return torch.max(bad), (x > 0).min()
            """,
        ),
    )
    counterexamples = (
        Example(
            "numbers",
            """
            def f(x: torch.Tensor):
                x = torch.relu(x)
                last = x.max()
                x = x > last
                return x
            """,
        ),
        Example(
            "an axis",
            """
            def f(x: torch.Tensor):
                return (x > 0).max(0)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write `any` and `all`."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        instead = _EXTREMES.get(use.api.rpartition(".")[2]) if use is not None else None
        if use is None or not instead or use.api.rpartition(".")[0] not in _HOMES:
            return False
        given = [*node.args, *(part.value for part in node.keywords if part.arg == "input")]
        of = node.func.value if use.is_member and isinstance(node.func, ast.Attribute) else None
        if of is None:
            of = given[0] if given else None
        if of is None or len(node.args) + len(node.keywords) != (0 if use.is_member else 1):
            return False
        if place(node) not in file.facts.of_masks and not _holds_masks(of, file):
            return False
        file.replace(node, f"{file.name(instead)}({file.argument(of)})")
        file.uses += 1
        file.converted += 1
        return True


def _holds_masks(node: ast.expr, file: FileEdit) -> bool:
    """Whether all that a name, or an expression, may hold is a mask by how it is written."""
    values = own_values_of(node, file) if isinstance(node, ast.Name) else [node]
    return bool(values) and all(is_mask(value, file) for value in values)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1


def _is_mask(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression, or what it is a part of, is a mask."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return _is_mask(node.left, file) and _is_mask(node.right, file)
    return is_boolean(node, file, uses_of_masks(file))
