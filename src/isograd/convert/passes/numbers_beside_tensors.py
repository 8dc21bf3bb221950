"""`x + torch.tensor(0.5, dtype=torch.float64)`: what has no axes does not raise the dtype in torch.

MindSpore's products and quotients have this rule, its sums and differences have not (2.10).
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import known_dtype
from isograd.convert.passes.reach_of_writes import all_values_of

_SIGNS = {ast.Add: "+", ast.Sub: "-"}
_MAKING = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "from_numpy"))
_ARRAYS = frozenset(("asarray", "array"))
#: Dtypes that raise others, and that others raise, where one side alone is known.
_HIGH, _LOW = frozenset(("float64", "int64")), frozenset(("float16", "bfloat16", "int32", "int16"))
_REDUCTIONS = frozenset(
    "sum nansum mean nanmean prod std var max min amax amin median norm".split()
)
_DEPTH = 4


class NumbersBesideTensors:
    """Sums of a tensor and what surely has no axes, where their dtypes may differ."""

    kinds = (ast.BinOp,)
    examples = (
        Example(
            "a number of a higher dtype",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x - torch.tensor(0.5, dtype=torch.float64)
            """,
        ),
        Example(
            "the mean beside halves",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                half = x.half()
                return half - y.mean()
            """,
        ),
    )
    counterexamples = (
        Example(
            "the mean of a tensor of unknown dtype",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x - x.mean()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Add in the dtype that torch takes, where the port runs."""
        assert isinstance(node, ast.BinOp)
        sign = _SIGNS.get(type(node.op))
        if sign is None or not file.imported.torch:
            return False
        left, right = (_has_no_axes(part, file) for part in (node.left, node.right))
        if left is right:
            return False
        alone, other = (node.left, node.right) if left else (node.right, node.left)
        if not _may_be_raised(alone, other, node, file):
            return False
        given = f"{file.argument(node.left)}, {file.argument(node.right)}"
        file.replace(node, f'{file.name("composites.sum_of_both")}("{sign}", {given})')
        return True


def _may_be_raised(alone: ast.expr, other: ast.expr, at: ast.AST, file: FileEdit) -> bool:
    if isinstance(other, ast.Constant):
        return False
    own, others = _dtype(alone, at, file), known_dtype(other, at, file)
    if own and others:
        return own != others
    return own in _HIGH or others in _LOW


def _dtype(node: ast.expr, at: ast.AST, file: FileEdit) -> str:
    found = known_dtype(node, at, file)
    if found or not isinstance(node, ast.Call):
        values = all_values_of(node, file) if isinstance(node, ast.Name) and not found else []
        return _dtype(values[0], at, file) if len(values) == 1 else found
    number = node.args[0] if file.api_of_call(node) in _MAKING and node.args else None
    if not isinstance(number, ast.Call) or node.keywords or number.keywords:
        return ""
    kinds = {type(getattr(part, "value", None)) for part in number.args}
    return "float64" if kinds == {float} else "int64" if kinds == {int} else ""


def _has_no_axes(node: ast.expr, file: FileEdit, depth: int = _DEPTH) -> bool:
    """Whether an expression surely is a tensor without axes."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        values = all_values_of(node, file)
        return bool(values) and all(_has_no_axes(value, file, depth - 1) for value in values)
    if not isinstance(node, ast.Call):
        return False
    use = file.use(node.func)
    if use is None or not use.api.startswith("torch."):
        return False
    if use.api in _MAKING:
        return bool(node.args) and _is_number(node.args[0])
    is_whole = not node.keywords and len(node.args) == (0 if use.is_member else 1)
    return is_whole and use.api.rpartition(".")[2] in _REDUCTIONS


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):  # np.asarray(0.5)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in _ARRAYS and len(node.args) == 1 and _is_number(node.args[0])
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
