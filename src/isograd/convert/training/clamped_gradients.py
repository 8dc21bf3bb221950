"""`for p in net.parameters(): p.grad.data.clamp_(-1, 1)`: torch's `clip_grad_value_`, by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.text import Text
from isograd.static_graph.scope import FileScope, below

_BOUNDS = ("min", "max")
WORD = "clamp_("


def clamped_gradients(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The loops of a file that clamp gradients, with the call that does the same."""
    file, places = FileScope(tree), Text(text)
    torch = next((own for own, full in file.imports.items() if full == "torch"), "")
    if not torch:
        return []
    loops = (node for node in below(tree) if isinstance(node, ast.For))
    return [
        (
            *places.span(loop),
            f"{torch}.nn.utils.clip_grad_value_({ast.unparse(loop.iter)}, {bound})",
        )
        for loop in loops
        for bound in _bound_of(loop)
    ]


def _bound_of(loop: ast.For) -> Iterator[str]:
    """The bound on both sides; nothing for a loop that does anything else."""
    if loop.orelse or len(loop.body) != 1 or not isinstance(loop.target, ast.Name):
        return
    if not isinstance(loop.iter, ast.Call) or getattr(loop.iter.func, "attr", "") != "parameters":
        return
    statement, own = loop.body[0], loop.target.id
    if isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
        if ast.unparse(statement.test) != f"{own}.grad is not None":
            return
        statement = statement.body[0]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    clamped = ast.unparse(call.func) in (f"{own}.grad.clamp_", f"{own}.grad.data.clamp_")
    given = dict(zip(_BOUNDS, call.args, strict=False))
    given |= {part.arg or "": part.value for part in call.keywords}
    if not clamped or set(given) != {*_BOUNDS}:
        return
    low, high = (ast.unparse(given[name]) for name in _BOUNDS)
    if low == f"-{high}" and isinstance(given["max"], (ast.Constant, ast.Name, ast.Attribute)):
        yield high
