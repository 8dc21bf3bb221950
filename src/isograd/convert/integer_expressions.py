"""Which expressions may be of integers or booleans by how they are written.

Functions of real numbers take them in torch and raise in MindSpore 2.10, and so does `cat` of
several dtypes.  Arguments of functions and attributes are not looked into: nothing shows it there.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.reach_of_writes import scope_of

DTYPES = frozenset(
    f"torch.{name}"
    for name in "int64 long int32 int int16 short int8 uint8 bool".split()
    + "LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor".split()
)
#: Casts by their own names.
CASTS = frozenset("long int short char byte bool".split())
#: What makes integers unless a dtype or a fraction is given.
_OF_VALUES = frozenset("tensor as_tensor arange full".split())
#: What makes integers whatever it is given.
POSITIONS = frozenset(
    """argmax argmin argsort nonzero argwhere randint randint_like randperm bincount searchsorted
    bucketize count_nonzero one_hot tril_indices triu_indices""".split()
)
MASKS = frozenset(
    """eq ne gt lt ge le isnan isinf isfinite isin logical_and logical_or logical_not logical_xor
    any all""".split()
)
#: Methods and functions whose result is of the same kind as their tensor.
_SAME = frozenset(
    """view reshape flatten unsqueeze squeeze expand expand_as repeat permute transpose t clone
    contiguous detach to cpu cuda sum cumsum prod cumprod max min amax amin clamp abs flip roll
    repeat_interleave index_select gather tril triu unbind""".split()
)
#: einops' functions of one tensor; `reduce` may take a mean.
_OF_EINOPS = frozenset(("rearrange", "repeat"))


def may_be_integer(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is a tensor that may be of integers or booleans."""
    if isinstance(node, ast.Compare):
        return not any(
            isinstance(kind, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for kind in node.ops
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
        return may_be_integer(node.operand, file)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            return False
        parts = (node.left, node.right)
        found = [may_be_integer(part, file) for part in parts]
        return any(found) and all(
            is_whole or _is_number(part) for is_whole, part in zip(found, parts, strict=True)
        )
    if isinstance(node, ast.Subscript):
        return may_be_integer(node.value, file)
    if isinstance(node, ast.Name):
        return _may_hold_whole(node, file)
    return isinstance(node, ast.Call) and _makes_them(node, file)


def _may_hold_whole(name: ast.Name, file: FileEdit) -> bool:
    """Of what assignments bind to a name; a circle of names adds nothing."""
    scope = scope_of(name, file)
    is_own = name.id in scope.bound or name.id in scope.parameters
    key = (scope.node if is_own else file.tree.module, name.id)
    if key not in file.integer_names:
        file.integer_names[key] = False
        if is_own:
            values = scope.values_of(name.id)
        else:
            values = file.tree.values_of_module.get(name.id, [])
        file.integer_names[key] = any(may_be_integer(value, file) for value in values)
    return file.integer_names[key]


def _makes_them(node: ast.Call, file: FileEdit) -> bool:
    api = file.api_of_call(node)
    if not api and not isinstance(node.func, ast.Attribute):
        return False
    name = api.rpartition(".")[2] if api else node.func.attr  # type: ignore[attr-defined]  # no API: a method
    if api in DTYPES:
        return True
    given = [part.value for part in node.keywords if part.arg == "dtype"]
    if not api and name in ("to", "type", "astype"):
        given += [part for part in node.args if _is_dtype(part, file)]
    if given:
        return any(is_integer_dtype(part, file) for part in given)
    if api.startswith("einops."):
        return name in _OF_EINOPS and any(may_be_integer(part, file) for part in node.args[:1])
    if api and not api.startswith("torch."):
        return False
    if api and name in _OF_VALUES:
        return not any(_is_fraction(part) for part in ast.walk(node) if part is not node)
    if name in POSITIONS or name in MASKS or (not api and name in CASTS and not node.args):
        return True
    if name not in _SAME:
        return False
    of = node.args[:1] if api else [node.func.value]  # type: ignore[attr-defined]  # as above
    return any(may_be_integer(part, file) for part in of)


def is_integer_dtype(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression names a dtype of integers or the one of booleans."""
    if isinstance(node, ast.Constant):
        return node.value in DTYPES
    use = file.use(node)
    return use is not None and use.api in DTYPES


def _is_dtype(node: ast.expr, file: FileEdit) -> bool:
    """Whether an argument of `x.to` is a dtype: one of torch's, or another tensor's."""
    return file.use(node) is not None or (isinstance(node, ast.Attribute) and node.attr == "dtype")


def _is_number(node: ast.expr) -> bool:
    """Whether a number of Python's leaves the other operand what it is: all but fractions may."""
    return not _is_fraction(node) and isinstance(node, (ast.Constant, ast.Name, ast.Attribute))


def _is_fraction(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (float, complex))
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
