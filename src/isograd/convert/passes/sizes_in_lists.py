"""`nn.MaxPool2d([2, 2])`: sizes in a list, where MindSpore takes numbers and tuples."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import all_values_of

_KINDS = "Conv ConvTranspose MaxPool AvgPool AdaptiveMaxPool AdaptiveAvgPool LPPool".split()
_PADS = "ConstantPad ZeroPad ReflectionPad ReplicationPad CircularPad".split()
_POOLS = "max_pool avg_pool adaptive_max_pool adaptive_avg_pool lp_pool".split()
#: What takes sizes, by the number of its axes.
_TAKING = {
    **{f"torch.nn.{kind}{axes}d": axes for kind in (*_KINDS, *_PADS) for axes in (1, 2, 3)},
    **{f"torch.nn.functional.{pool}{axes}d": axes for pool in _POOLS for axes in (1, 2, 3)},
}
_DISPLAYS = (ast.List, ast.Tuple)


class SizesInLists:
    """Sizes of convolutions, pools and pads; the call itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example("a list that is written out", "pool = nn.MaxPool2d([3, 3], stride=[1, 2])"),
        Example(
            "a list by name",
            """
            size = [3, 3]
            conv = nn.Conv2d(3, 4, size)
            """,
        ),
        Example("one axis", "conv = nn.Conv1d(3, 4, [3], padding=[1])"),
    )
    counterexamples = (
        Example("a tuple", "pool = nn.MaxPool2d((3, 3))"),
        Example(
            "a name that a loop binds too",
            """
            size = [3, 3]
            for size in (2, 3):
                pool = nn.MaxPool2d(size)
            """,
        ),
        Example(
            "a name that may hold a number",
            """
            def pool(size):
                return nn.MaxPool2d(size)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write lists as tuples; of one axis the only element."""
        assert isinstance(node, ast.Call)
        axes = _TAKING.get(file.api_of_call(node))
        if axes is None:
            return False
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(given, ast.List):
                file.replace(given, _of_display(given, axes, file))
            elif isinstance(given, ast.Name) and _is_list(given, file):
                file.replace(given, f"tuple({given.id})" if axes > 1 else f"{given.id}[0]")
        return False


def _of_display(node: ast.List, axes: int, file: FileEdit) -> str:
    parts = [file.source(part) for part in node.elts]
    if axes == 1 and len(parts) == 1 and not isinstance(node.elts[0], ast.Starred):
        return file.argument(node.elts[0])
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _is_list(node: ast.Name, file: FileEdit) -> bool:
    """Whether a name can hold nothing but lists and tuples that are written out, some a list."""
    values = all_values_of(node, file)
    are_displays = all(isinstance(value, _DISPLAYS) for value in values)
    return are_displays and any(isinstance(value, ast.List) for value in values)
