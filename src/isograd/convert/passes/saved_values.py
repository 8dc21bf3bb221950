"""Old values that a write in place must leave alone: a gradient reads them later.

`h[...] = h * g` writes into the memory that MindSpore keeps for the gradient of g; torch keeps a
copy there.  So what is computed reads a copy, unless the gradient needs the result alone.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import is_without_gradient
from isograd.convert.text import Text, narrow, wide

#: Functions of MindSpore, and methods, whose gradient reads no input, or none that is not the
#: result's alike (a mask of signs): executed with the input overwritten by the result.
_BY_RESULT = frozenset(
    """relu relu6 sigmoid tanh exp sqrt rsqrt reciprocal neg softmax log_softmax elu selu celu
    floor ceil round trunc sign masked_fill triu tril cumsum zeros_like ones_like full_like astype
    add sub dropout isnan isinf isfinite""".split()
)
_LAYERS = frozenset("ReLU ReLU6 Sigmoid Tanh ELU CELU SeLU Dropout Softmax Hardtanh".split())
_LIBRARIES = frozenset("ops mint nn".split())
_LINEAR = (ast.Add, ast.Sub, ast.FloorDiv, ast.BitAnd, ast.BitOr, ast.BitXor)
#: What is asked of a tensor without its values.
_FORM = frozenset("shape dtype ndim size itemsize".split())
_COPYING, _WRITING = "deepcopy", "overwrite"
#: The same, by the classes of torch, of which one is written otherwise.
_LAYERS_OF_TORCH = frozenset(f"torch.nn.{name}".replace("SeLU", "SELU") for name in _LAYERS)


def by_result(api: str) -> bool:
    """Whether the gradient of a layer of torch's needs what the layer returned and no input."""
    return api in _LAYERS_OF_TORCH


def of_old_values(place: str, code: str, node: ast.AST, file: FileEdit) -> str:
    """Code whose value is written into `place`, reading a copy of it where a gradient needs one."""
    if is_without_gradient(node, file):
        return code
    around, text = layout.parsed(f"({code})"), Text(wide(f"({code})"))
    wanted = layout.parsed(place)
    if around is None or wanted is None:
        return code
    shown = ast.dump(wanted)
    parents = {child: above for above in ast.walk(around) for child in ast.iter_child_nodes(above)}
    for part in reversed(list(ast.walk(around))):  # inner ones first
        if isinstance(part, ast.expr) and shown in (ast.dump(part), _written_by(part)):
            if _is_saved(part, parents):
                start, end = text.span(part)
                text.replace(start, end, f"{file.name('ops.deepcopy')}({text.source(start, end)})")
    return narrow(text.result())[1:-1]


def _written_by(node: ast.expr) -> str:
    """What a part of a chain has written into and returns: `overwrite(x, x * 2)`."""
    is_write = isinstance(node, ast.Call) and _name(node.func) == _WRITING and node.args
    return ast.dump(node.args[0]) if is_write else ""  # type: ignore[attr-defined]


def _name(called: ast.expr) -> str:
    return getattr(called, "attr", "") or getattr(called, "id", "")


def _is_saved(part: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a gradient may read what stands here when it is taken."""
    above = parents.get(part)
    if isinstance(above, ast.keyword):
        above = parents.get(above)
    if isinstance(above, ast.Attribute):
        if above.attr in _FORM:
            return False
        call = parents.get(above)
        is_method = isinstance(call, ast.Call) and call.func is above
        return not (is_method and above.attr in _BY_RESULT)
    if isinstance(above, ast.BinOp):
        return not _is_linear(above, part)
    if isinstance(above, ast.Call):
        if _name(above.func) == _WRITING and above.args[0] is part:
            return False
        return _name(above.func) != _COPYING and not _is_by_result(above.func)
    return above is not None and not isinstance(above, (ast.UnaryOp, ast.Compare))


def _is_linear(node: ast.BinOp, part: ast.expr) -> bool:
    """Whether a sign's gradient reads no operand, or the result and the divisor alone."""
    if isinstance(node.op, _LINEAR):
        return True
    other = node.right if node.left is part else node.left
    while isinstance(other, ast.UnaryOp):
        other = other.operand
    if isinstance(node.op, ast.Div):
        return node.left is part
    return isinstance(node.op, (ast.Mult, ast.Mod)) and isinstance(other, ast.Constant)


def _is_by_result(called: ast.expr) -> bool:
    """`ops.relu`, `nn.ReLU()`."""
    known = _BY_RESULT
    if isinstance(called, ast.Call):
        called, known = called.func, _LAYERS
    if not isinstance(called, ast.Attribute) or called.attr not in known:
        return False
    root: ast.expr = called.value
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in _LIBRARIES
