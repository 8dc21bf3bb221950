"""`torch.log(n / 8).long()`: logarithms that are cut to integers, as of relative positions.

MindSpore's on the CPU are up to 4 units in the last place too small, so that a power of two falls
into the bucket before its own (`torch.log(x) / math.log(4) * 4` of 2.0 is 1.9999998).
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import CASTS, DTYPES
from isograd.convert.passes.example import Example
from isograd.convert.tree import first_argument

_LOGARITHMS = frozenset("log log2 log10".split())
_ROUNDING = frozenset("floor ceil round trunc floor_ ceil_ round_ trunc_".split())
#: What stands between a logarithm and what cuts it.
_BETWEEN = (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Call)


class TruncatedLogarithms:
    """Logarithms within an expression that is rounded or cast to integers."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a logarithm that is cut",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.log(x / 8).long()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a logarithm",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.log(x / 8)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Compute them in float64; the cast or the rounding itself is for other passes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        name = use.api.rpartition(".")[2] if use is not None else ""
        if use is None or not use.is_sure or name not in _LOGARITHMS or not _is_cut(node, file):
            return False
        given = first_argument(node, "input")
        if use.is_member:
            assert isinstance(node.func, ast.Attribute)
            given = node.func.value
        elif node.keywords or len(node.args) != 1:
            return False
        if given is None:
            return False
        function = file.name(f"ops.{name}")
        file.replace(node, f"{file.name('composites.exactly')}({function}, {file.source(given)})")
        file.uses += 1
        file.converted += 1
        return True


def _is_cut(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression around a node rounds it, or makes integers of it."""
    for part in file.tree.above(node):
        if not isinstance(part, _BETWEEN):
            return False
        if isinstance(part, ast.Call) and _cuts(part, file):
            return True
    return False


def _cuts(call: ast.Call, file: FileEdit) -> bool:
    name = getattr(call.func, "attr", "")
    if name in _ROUNDING or name in CASTS:
        return True
    kinds = [*call.args[:1], *(part.value for part in call.keywords if part.arg == "dtype")]
    if name not in ("to", "type"):
        return False
    return any(getattr(file.use(kind), "api", "") in DTYPES for kind in kinds)
