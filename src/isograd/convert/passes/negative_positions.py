"""`x[positions]`: MindSpore 2.10 drops the gradient of what negative ones take, outside a graph."""

from __future__ import annotations

import ast

from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.nonnegative import is_nonnegative
from isograd.convert.passes.elements import is_buffer, is_without_gradient
from isograd.convert.passes.example import Example
from isograd.convert.places import place

#: What may be read twice without effects, and methods that give a view.
_READ = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp,
    ast.expr_context, ast.unaryop, ast.Call,
)  # fmt: skip
_VIEWS = frozenset("view reshape flatten t transpose permute squeeze unsqueeze T".split())


class NegativePositions:
    """`x[positions]`, unless the positions are known to count from the front."""

    kinds = (ast.Subscript,)
    after = ("NumpyIndices", "NumbersBesidePositions")
    examples = (
        Example(
            "positions of unknown origin",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[y.long()]
            """,
        ),
        Example(
            "elements that change by what they were",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x * 2
                order = y.long() - 1
                z[order] *= 3
                return z
            """,
        ),
    )
    counterexamples = (
        Example(
            "positions that torch has found",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                found, order = y.topk(2)
                return x[order.view(-1)] + x[y.argmax()]
            """,
        ),
        Example(
            "a mask",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[y > 0]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Count the positions from the front where the port runs."""
        assert isinstance(node, ast.Subscript)
        at, facts = place(node), file.facts
        is_taken = at in facts.picked or at in facts.by_position
        is_of_modules = place(node.value) in facts.lists
        if not is_taken or is_of_modules or _has_no_gradient(node, file):
            return False
        if is_nonnegative(node.slice, file):
            return False
        owner, index = file.source(node.value), file.argument(node.slice)
        parent = file.tree.parents.get(node)
        if isinstance(node.ctx, ast.Load):
            if isinstance(parent, ast.Attribute) and _is_written(parent):
                return False
            are_tensors = at in facts.by_position and at in facts.selections
            if are_tensors and _may_be_read_twice(node.value):
                new = f"{file.name('composites.from_front')}({index}, {owner})"
                file.replace(node.slice, new)
            else:
                file.replace(node, f"{file.name('composites.at')}({owner}, {index})")
        elif isinstance(parent, ast.AugAssign) and _may_be_read_twice(node.value):
            new = f"{file.name('composites.from_front')}({index}, {owner})"
            file.replace(node.slice, new)
        return False


def _has_no_gradient(node: ast.Subscript, file: FileEdit) -> bool:
    owner = node.value
    return is_without_gradient(node, file) or is_data(owner) or is_buffer(owner, file)


def _is_written(node: ast.Attribute) -> bool:
    """`x[i].add_`, which changes a copy."""
    return node.attr.endswith("_") or not isinstance(node.ctx, ast.Load) or is_data(node)


def _may_be_read_twice(node: ast.expr) -> bool:
    return all(
        isinstance(part, _READ)
        and (not isinstance(part, ast.Call) or getattr(part.func, "attr", "") in _VIEWS)
        for part in ast.walk(node)
    )
