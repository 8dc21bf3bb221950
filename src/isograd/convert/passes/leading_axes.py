"""`x[0] = y[None]`: torch leaves leading axes of one element out, MindSpore 2.10 raises."""

from __future__ import annotations

import ast

from isograd.convert.aliases import Scope
from isograd.convert.file import FileEdit
from isograd.convert.indexes import is_ellipsis, parts_of
from isograd.convert.passes.elements import elements, write_elements
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.convert.tree import first_argument, is_none

#: Methods whose result has the axes of their tensor.
_KEEPING = frozenset(
    """abs clamp clip clone contiguous cpu cuda detach double exp float half log long neg pow relu
    sigmoid softmax sqrt square tanh to type type_as""".split()
)


class LeadingAxes:
    """Values with a leading axis of one element, written into a tensor by an index."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "a value with an axis more",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = torch.zeros(2, 3)
                z[0] = y[None]
                return z
            """,
        ),
    )
    counterexamples = (
        Example(
            "a value without",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = torch.zeros(2, 3)
                z[0] = y
                return z
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write them by what leaves such axes out."""
        assert isinstance(node, ast.Assign)
        targets = [
            target
            for target in node.targets
            if isinstance(target, ast.Subscript)
            and place(target) in file.facts.indexed
            and not _keeps_several(target.slice)
        ]
        if targets and _may_lead_with_one(node.value, scope_of(node, file), set()):
            if node.targets == targets[:1]:
                write_elements(targets[0], node, file.argument(node.value), file, stored=True)
                return True
            for target in targets:
                file.replace(target, elements(target, file, stored=True))
        return False


def _keeps_several(index: ast.expr) -> bool:
    """Whether what an index takes has several axes, to which a leading one belongs mostly."""
    parts = parts_of(index)
    slices = sum(isinstance(part, ast.Slice) for part in parts)
    return slices > 1 or (len(parts) > 1 and any(map(is_ellipsis, parts)))


def _may_lead_with_one(value: ast.expr, scope: Scope, known: set[str]) -> bool:
    """Whether a tensor got a leading axis of one element, or was computed with one that did."""
    if isinstance(value, ast.Name):
        if value.id in known:
            return False
        known.add(value.id)
        bound = scope.values_of(value.id)
        return any(_may_lead_with_one(part, scope, known) for part in bound)
    if isinstance(value, ast.Subscript):
        return is_none(parts_of(value.slice)[0])
    if isinstance(value, ast.Call):
        return _is_led_by_one(value, scope, known)
    if not isinstance(value, (ast.BinOp, ast.UnaryOp, ast.IfExp)):
        return False
    operands = [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]
    return any(_may_lead_with_one(part, scope, known) for part in operands)


def _is_led_by_one(call: ast.Call, scope: Scope, known: set[str]) -> bool:
    """`y.unsqueeze(0)`, `y.view(1, -1)`, and what keeps the axes of such a tensor."""
    if not isinstance(call.func, ast.Attribute):
        return False
    name = call.func.attr
    if name in ("view", "reshape"):
        sizes = call.args
        if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
            sizes = sizes[0].elts
        return len(sizes) > 1 and _is_number(sizes[0], 1)
    if name == "unsqueeze":
        return _is_number(first_argument(call, "dim"), 0)
    return name in _KEEPING and _may_lead_with_one(call.func.value, scope, known)


def _is_number(node: ast.expr | None, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number
