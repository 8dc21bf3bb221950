"""Which arguments of torch's are tensors, and which lists are repeated as often as one says."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from isograd.convert.places import Place, place
from isograd.scan.values import Items, Tensor, Value

_TEXTS = (ast.Constant, ast.JoinedStr)


def tensors_given(
    node: ast.Call, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Iterator[Place]:
    """Where a call is given a tensor: as an argument, or in a list or tuple that is written out."""
    given = [*zip(node.args, arguments, strict=False)]
    given += [(part.value, keywords.get(part.arg or "")) for part in node.keywords]
    for part, value in given:
        if isinstance(value, Tensor):
            yield place(part)
        elif isinstance(value, Items) and value.parts and isinstance(part, (ast.Tuple, ast.List)):
            for item, one in zip(part.elts, value.parts, strict=False):
                if isinstance(one, Tensor):
                    yield place(item)


def times_repeated(node: ast.BinOp, left: Value, right: Value) -> ast.expr | None:
    """The tensor n of `[0] * n` and of `n * "ab"`; None where no list is repeated by a tensor."""
    if not isinstance(node.op, ast.Mult):
        return None
    for part, value, other, repeated in (
        (node.left, left, node.right, right),
        (node.right, right, node.left, left),
    ):
        is_text = isinstance(other, _TEXTS) and isinstance(getattr(other, "value", ""), str)
        if isinstance(value, Tensor) and (is_text or isinstance(repeated, Items)):
            return part
    return None
