"""Casts to integers and to booleans, through which torch sends no gradient.

MindSpore 2.10 does: the gradient of `x.long().float()` is 1, so `x - x.long()` would have none.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import (
    CASTS,
    MASKS,
    POSITIONS,
    is_integer_dtype,
    may_be_integer,
)
from isograd.convert.origins import Reach, origin_of_write
from isograd.convert.passes.example import Example
from isograd.convert.passes.indexed_copies import written_around
from isograd.convert.passes.known_dtypes import known_dtype
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import pairs_of

#: What returns integers or booleans, or has no gradient in MindSpore either.
_WITHOUT_GRADIENT = (CASTS | POSITIONS | MASKS).union(
    """equal floor ceil round trunc sign arange zeros ones full empty zeros_like ones_like full_like
    empty_like tensor from_numpy detach multinomial bernoulli unique""".split()
)

#: Methods that cast, with the dtypes that MindSpore has for them.
_DTYPES = {
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool_", "float": "float32", "double": "float64", "half": "float16",
    "bfloat16": "bfloat16",
}  # fmt: skip


class Casts:
    """`x.long()`, `x.to(torch.int64)`: of what may have a gradient."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "integers of what has a gradient",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x - x.long()
            """,
        ),
        Example(
            "a cast into which is written, which may be its tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                z = x.double()
                z[0] = 1
                return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "integers of integers",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.argmax(1).long()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Stop the gradient before the cast; the cast itself is for other passes."""
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute):
            return False
        if node.func.attr == "type_as":
            return _as_other(node, node.func.value, file)
        if _is_shared_and_written(node, node.func, file):
            return _as_itself(node, node.func, file)
        if not _is_cast(node, node.func, file):
            return False
        use, value = file.use(node.func), node.func.value
        if use is None or not use.is_member or _is_without_gradient(value, file):
            return False
        file.replace(value, f"{file.name('ops.stop_gradient')}({file.source(value)})")
        return False


def _is_shared_and_written(node: ast.Call, method: ast.Attribute, file: FileEdit) -> bool:
    """Whether `y = x.long()` may be x itself, and something is written into y.

    MindSpore's casts make another tensor of the same dtype, too.
    """
    parent = file.tree.parents.get(node)
    if not isinstance(parent, ast.Assign) or not _dtype_of_cast(node, method, file):
        return False
    root, reach = origin_of_write(method.value, file.views)
    if not isinstance(root, (ast.Name, ast.Attribute)) or reach is Reach.LOST:
        return False
    known = [known_dtype(part, node, file) for part in (method.value, node)]
    if all(known) and known[0] != known[1]:
        return False
    return any(
        value is node and ast.unparse(target) in written_around(target, node, file)
        for one in parent.targets
        for target, value in pairs_of(one, parent.value)
    )


def _as_itself(node: ast.Call, method: ast.Attribute, file: FileEdit) -> bool:
    """Write the cast that gives a tensor of its dtype back."""
    given = f"{file.argument(method.value)}, {_dtype_of_cast(node, method, file)}"
    file.replace(node, f"{file.name('composites.typed')}({given})")
    file.uses += 1
    file.converted += 1
    return True


def _dtype_of_cast(node: ast.Call, method: ast.Attribute, file: FileEdit) -> str:
    """The dtype of `x.long()`, `x.to(torch.int64)` and `x.to(dtype=…)`; empty of anything else."""
    use = file.use(method)
    if use is None or not use.is_member or not use.api.startswith("torch.Tensor."):
        return ""
    if method.attr in _DTYPES:
        return "" if node.args or node.keywords else file.name(f"ms.{_DTYPES[method.attr]}")
    given = [*node.args, *(part.value for part in node.keywords if part.arg == "dtype")]
    if method.attr not in ("to", "type") or len(given) != 1:
        return ""
    if len(node.args) + len(node.keywords) != 1:
        return ""
    return file.argument(given[0]) if _is_dtype_of_torch(given[0], file) else ""


def _is_dtype_of_torch(node: ast.expr, file: FileEdit) -> bool:
    kind = file.use(node)
    if kind is None or kind.is_member:
        return False
    name = kind.api.removeprefix("torch.")
    return name in _DTYPES or name in _DTYPES.values() or name == "bool"


def _as_other(node: ast.Call, value: ast.expr, file: FileEdit) -> bool:
    """`x.type_as(y)`, where y may be of integers."""
    if len(node.args) != 1 or not may_be_integer(node.args[0], file):
        return False
    other = file.source(node.args[0])
    if not isinstance(node.args[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        other = f"({other})"
    given = f"{file.argument(value)}, {other}.dtype"
    file.replace(node, f"{file.name('composites.typed')}({given})")
    file.uses += 1
    file.converted += 1
    return True


def _is_cast(node: ast.Call, method: ast.Attribute, file: FileEdit) -> bool:
    given = [*node.args, *(part.value for part in node.keywords if part.arg == "dtype")]
    if method.attr in CASTS:
        return not given
    if method.attr not in ("to", "type"):
        return False
    return any(is_integer_dtype(part, file) for part in given)


def _is_without_gradient(
    node: ast.expr, file: FileEdit, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether an expression is of integers or booleans by how it is written."""
    if isinstance(node, (ast.Compare, ast.Constant)):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not)) or _is_without_gradient(
            node.operand, file, seen
        )
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)):
            return True
        return all(_is_without_gradient(part, file, seen) for part in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        return _is_without_gradient(node.value, file, seen)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in _WITHOUT_GRADIENT or _is_cast_call(node, file)
    if isinstance(node, ast.Name) and node.id not in seen:
        scope = scope_of(node, file)
        if node.id in scope.parameters:
            return False
        if node.id in written_around(node, node, file):
            return False
        values = scope.values_of(node.id)
        known = seen | {node.id}
        return bool(values) and all(_is_without_gradient(v, file, known) for v in values)
    return False


def _is_cast_call(node: ast.Call, file: FileEdit) -> bool:
    return isinstance(node.func, ast.Attribute) and _is_cast(node, node.func, file)
