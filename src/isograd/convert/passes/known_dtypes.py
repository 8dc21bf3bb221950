"""Dtypes that are known by how tensors are made, where a change in place keeps the target's.

`x = x + y` takes the higher dtype of both; torch's `x += y` keeps that of x.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.reach_of_writes import scope_of

_NAMES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64"}
_NAMES |= {"int": "int32", "short": "int16"}
#: The order of the dtypes of one kind; of two of the same rank torch takes a third.
_RANKS = {
    "uint8": ("int", 1),
    "int8": ("int", 1),
    "int16": ("int", 2),
    "int32": ("int", 3),
    "int64": ("int", 4),
    "float16": ("float", 1),
    "bfloat16": ("float", 1),
    "float32": ("float", 2),
    "float64": ("float", 3),
}
_FLOATS = frozenset("zeros ones empty rand randn eye".split())
_LIKE = frozenset("zeros_like ones_like empty_like rand_like randn_like full_like".split())
_SAME = frozenset("clone detach contiguous reshape view flatten squeeze unsqueeze".split())
_DEFAULT = "set_default_dtype"


def kept_dtype(
    name: str, code: str, node: ast.Call | ast.AugAssign, operands: Iterable[ast.expr], at: FileEdit
) -> str:
    """Code whose value is bound to a name, cast where an operand is known to raise the dtype."""
    target = ast.copy_location(ast.Name(name, ast.Load()), node)
    own = known_dtype(target, node, at)
    if own not in _RANKS:
        return code
    given = [known_dtype(part, node, at) for part in operands]
    is_out = isinstance(node, ast.Call) and any(part.arg == "out" for part in node.keywords)
    if any(_is_raised(own, other) or (is_out and other not in ("", own)) for other in given):
        return f"{layout.closed(code)}.astype({name}.dtype)"
    return code


def operands_of(target: ast.expr, node: ast.Call) -> list[ast.expr]:
    """What a chain of calls is given beside the tensor that it changes."""
    found: list[ast.expr] = []
    link: ast.expr = node
    while isinstance(link, ast.Call):
        found += [*link.args, *(part.value for part in link.keywords if part.arg != "dtype")]
        link = link.func.value if isinstance(link.func, ast.Attribute) else link.func
    return [part for part in found if ast.dump(part) != ast.dump(target)]


def _is_raised(own: str, other: str) -> bool:
    if other == own or other not in _RANKS:
        return False
    (kind, rank), (others, most) = _RANKS[own], _RANKS[other]
    return kind == others and most >= rank


def known_dtype(node: ast.expr, at: ast.AST, file: FileEdit, depth: int = 8) -> str:
    """The dtype that an expression surely has; empty if it is not known."""
    if depth == 0:
        return ""
    if isinstance(node, ast.Name):
        made = scope_of(at, file).statements_of(node.id, at)
        found = {_of_statement(one, node.id, file, depth - 1) for one in made}
        return found.pop() if len(found) == 1 else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return known_dtype(node.operand, at, file, depth - 1)
    if isinstance(node, ast.BinOp):
        return _of_both(node, at, file, depth - 1)
    if not isinstance(node, ast.Call):
        return ""
    api = file.api_of_call(node)
    given = [part.value for part in node.keywords if part.arg == "dtype"]
    use = file.use(node.func)
    if use is not None and use.is_member and isinstance(node.func, ast.Attribute):
        if not use.api.startswith("torch.Tensor."):
            return ""
        return _of_method(node, node.func, given, at, file, depth)
    name = api.rpartition(".")[2] if api.startswith("torch.") else ""
    if given:
        return _dtype(given[0], file) if name else ""
    if name in _LIKE and node.args:
        return known_dtype(node.args[0], at, file, depth - 1)
    if name in _FLOATS:
        changes = any(part.attr == _DEFAULT for part in file.tree.of(ast.Attribute))
        return "" if changes else "float32"
    is_whole = all(type(getattr(part, "value", None)) is int for part in node.args)
    return "int64" if name == "arange" and is_whole else _of_numbers(name, node)


def _of_both(node: ast.BinOp, at: ast.AST, file: FileEdit, depth: int) -> str:
    """`x * 2` and `x + y`, where one of both dtypes is the result's."""
    one, other = (known_dtype(part, at, file, depth) for part in (node.left, node.right))
    numbers = [part for part in (node.left, node.right) if isinstance(part, ast.Constant)]
    if numbers:
        found = one or other
        is_whole = type(numbers[0].value) is int and not isinstance(node.op, ast.Div)
        return found if "float" in found or is_whole else ""
    if one not in _RANKS or other not in _RANKS or isinstance(node.op, ast.Div):
        return one if one == other and "float" in one else ""
    if _is_raised(one, other) and _is_raised(other, one):
        return ""  # a third dtype
    if _RANKS[one][0] != _RANKS[other][0]:
        return one if "float" in one else other
    return other if _is_raised(one, other) else one


def _of_numbers(name: str, node: ast.Call) -> str:
    """`torch.tensor([1, 2])`, of numbers that are written out."""
    if name != "tensor" or len(node.args) != 1:
        return ""
    kinds = {type(part.value) for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)}
    plain = (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
    is_plain = all(isinstance(part, plain) for part in ast.walk(node.args[0]))
    return "int64" if is_plain and kinds == {int} else ""


def _of_method(
    node: ast.Call,
    method: ast.Attribute,
    given: list[ast.expr],
    at: ast.AST,
    file: FileEdit,
    depth: int,
) -> str:
    """`x.double()`, `x.to(torch.float64)`, `x.clone()`, `x.add_(1)`."""
    if method.attr in ("to", "type"):
        return _dtype((given or [*node.args, node])[0], file)
    if method.attr in _NAMES and not node.args:
        return _NAMES[method.attr]
    if method.attr in _SAME or (method.attr.endswith("_") and not method.attr.startswith("_")):
        return known_dtype(method.value, at, file, depth - 1)
    return ""


def _of_statement(statement: ast.AST, name: str, file: FileEdit, depth: int) -> str:
    """What an assignment to a name alone binds."""
    if not isinstance(statement, ast.Assign) or statement.value is None:
        return ""
    if not all(isinstance(target, ast.Name) for target in statement.targets):
        return ""
    return known_dtype(statement.value, statement, file, depth)


def _dtype(node: ast.expr, file: FileEdit) -> str:
    use = file.use(node)
    found = use.api.partition(".")[2] if use is not None and not use.is_member else ""
    found = _NAMES.get(found, found)
    return found if found in _RANKS else ""
