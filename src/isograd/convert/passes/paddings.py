"""`F.pad(x, (0, 1))`: MindSpore's own, where no width is below 0 and the tensor has elements.

Of a width below 0 `ops.pad` leaves elements as they lie in memory (2.10, CPU), and it raises where
nothing is left.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.bound_names import bound_names
from isograd.convert.analysis.paddings import is_width
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none
from isograd.knowledge.fitting import is_number

_PAD = "torch.nn.functional.pad"
_NAMES = ("input", "pad", "mode", "value")


class Paddings:
    """Paddings with a number, by widths that are written out, sizes, rests and halves of them."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "widths that are written out",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.nn.functional.pad(x, [0, 1, 2, 1], value=-1.0)
            """,
        ),
        Example(
            "the rest of a size, by a name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                H, W = x.shape
                widths = (0, -W % 2, 0, H % 3)
                return torch.nn.functional.pad(x, widths)
            """,
        ),
        Example(
            "halves",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                n = max(0, 5 - x.shape[1])
                return torch.nn.functional.pad(x, (n // 2, n - n // 2), "constant", 0)
            """,
        ),
    )
    counterexamples = (
        Example(
            "what may be below 0",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.nn.functional.pad(x, (0, 4 - x.shape[1]))
            """,
        ),
        Example(
            "an argument, and a name that is changed",
            """
            def f(x: torch.Tensor, y: torch.Tensor, n=1):
                m = 3
                m -= x.shape[0]
                return torch.nn.functional.pad(x, (n, 0)) + torch.nn.functional.pad(x, (m, 0))
            """,
        ),
        Example(
            "elements of the tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.nn.functional.pad(x, (1, 1), mode="replicate")
            """,
        ),
        Example(
            "what a mask takes, which may be nothing",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.nn.functional.pad(x[y > 0], (0, 0))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's own call."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.is_member or use.api != _PAD or file.settings.target == "mint":
            return False
        given = _given(node)
        if given is None or not {"input", "pad"} <= given.keys():
            return False
        mode, value = given.get("mode"), given.get("value")
        if mode is not None and getattr(mode, "value", None) != "constant":
            return False
        if value is not None and not (is_none(value) or is_number(ast.unparse(value))):
            return False
        if not _are_widths(given["pad"], file) or file.emptiness.may(given["input"]):
            return False
        code = f"{file.argument(given['input'])}, {file.argument(given['pad'])}"
        if value is not None and not is_none(value):
            code = f"{code}, value={file.argument(value)}"
        layout.write_call(file, node, f"{file.name('ops.pad')}({code})")
        file.uses += 1
        file.converted += 1
        return True


def _given(node: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments by their names; None where a star hides some."""
    if any(isinstance(part, ast.Starred) for part in node.args):
        return None
    found = dict(zip(_NAMES, node.args, strict=False))
    for part in node.keywords:
        if part.arg not in _NAMES:
            return None
        found[part.arg] = part.value
    return found


def _are_widths(node: ast.expr, file: FileEdit) -> bool:
    """Whether two widths for each axis are written out, there or as the tuple that a name holds."""
    if isinstance(node, (ast.Tuple, ast.List)):
        is_paired = len(node.elts) % 2 == 0 and bool(node.elts)
        return is_paired and all(is_width(part, file.tree) for part in node.elts)
    function = file.tree.function(node) if isinstance(node, ast.Name) else None
    if function is None:
        return False
    assert isinstance(node, ast.Name)
    bound = bound_names(function, file.tree)
    values = bound.values.get(node.id, [])
    if not values or node.id in bound.arguments or bound.stores[node.id] != len(values):
        return False
    return all(isinstance(one, ast.Tuple) and _are_widths(one, file) for one in values)
