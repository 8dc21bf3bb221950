"""What an argument's source has to be to fit a place of a template."""

from __future__ import annotations

import ast
from functools import lru_cache


def expression(code: str) -> ast.expr | None:
    """The expression that code is; None where it is none."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def is_plain(code: str) -> bool:
    """Whether an expression is a name, a number, or a tuple or list of them: it does nothing."""
    node = expression(code)
    if node is None:
        return False
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    bare = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts]
    return all(isinstance(part, (ast.Name, ast.Constant)) for part in bare)


def are_edges(code: str) -> bool:
    """Whether an expression is pairs of which none can have a number below 0 and one above."""
    node = expression(code)
    if not isinstance(node, (ast.Tuple, ast.List)) or len(node.elts) % 2:
        return False
    texts = [ast.unparse(part) for part in node.elts]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return all(
        "0" in pair or (_is_path(pair[0]) and pair[0] == pair[1]) or all(map(str.isdecimal, pair))
        for pair in pairs
    )


def _is_path(code: str) -> bool:
    return all(part.isidentifier() for part in code.split("."))


@lru_cache(maxsize=4096)
def is_list(text: str) -> bool:
    """Whether an expression is a list whatever its names mean."""
    node = expression(text)
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
        node = node.left
    return isinstance(node, (ast.List, ast.ListComp))
