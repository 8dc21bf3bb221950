"""`x + torch.tensor(0.5, dtype=torch.float64)`: what has no axes does not raise the dtype in torch.

MindSpore's products and quotients have this rule, its sums and differences have not (2.10).
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import known_dtype
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.passes.reach_of_writes import all_values_of
from isograd.convert.tree import first_argument, imported_from

_SIGNS = {ast.Add: "+", ast.Sub: "-"}
_MAKING = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "from_numpy"))
_PARAMETERS = frozenset(
    f"torch.nn.{name}"
    for name in ("Parameter", "Buffer", "parameter.Parameter", "parameter.Buffer")
)
#: Functions of numpy's that give a number where they are given one, or nothing but an array.
_OF_NUMBER = frozenset(
    "asarray array log log2 log10 log1p exp expm1 sqrt abs sin cos tan float32 float64".split()
)
_OF_ARRAY = frozenset("prod sum mean std var max min amax amin median".split())
_CONSTANTS = frozenset("pi e inf nan euler_gamma tau".split())
_NUMBERS = frozenset(("float", "int", "len"))
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
        Example(
            "a number that a network holds",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer("zero", torch.tensor(0.5, dtype=torch.float64))

                def forward(self, x):
                    return x - self.zero
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
    node = _made(node, file)
    found = known_dtype(node, at, file)
    if found or not isinstance(node, ast.Call):
        values = [] if found else _values_of(node, file)
        return _dtype(values[0], values[0], file) if len(values) == 1 else found
    number = node.args[0] if file.api_of_call(node) in _MAKING and node.args else None
    if not isinstance(number, ast.Call) or node.keywords or number.keywords:
        return ""
    kinds = {type(getattr(part, "value", None)) for part in number.args}
    return "float64" if kinds == {float} else "int64" if kinds == {int} else ""


def _made(node: ast.expr, file: FileEdit) -> ast.expr:
    """What a Parameter or a buffer is made of; other expressions as they are."""
    if not isinstance(node, ast.Call) or file.api_of_call(node) not in _PARAMETERS:
        return node
    return first_argument(node, "data") or node


def _values_of(node: ast.expr, file: FileEdit) -> list[ast.expr]:
    """All that is bound to a name, or to an attribute by the class that reads it."""
    if isinstance(node, ast.Name):
        return all_values_of(node, file)
    owner = file.tree.owner(node)
    if owner is None or not isinstance(node, ast.Attribute):
        return []
    if getattr(node.value, "id", "") != "self":
        return []
    values = list(file.attribute_values.get((owner, node.attr), ()))
    stores = sum(
        part.attr == node.attr and not isinstance(part.ctx, ast.Load)
        for part in file.tree.of(ast.Attribute)
    )
    if len(values) != stores:
        return []
    made = registered_buffers(owner, file).get(node.attr)
    if made is None or file.api_of_call(made) in _PARAMETERS:
        return values
    given = [*made.args[1:2], *(part.value for part in made.keywords if part.arg == "tensor")]
    return [*values, *given]


def _has_no_axes(node: ast.expr, file: FileEdit, depth: int = _DEPTH) -> bool:
    """Whether an expression surely is a tensor without axes."""
    if depth == 0:
        return False
    node = _made(node, file)
    if isinstance(node, (ast.Name, ast.Attribute)):
        values = _values_of(node, file)
        return bool(values) and all(_has_no_axes(value, file, depth - 1) for value in values)
    if not isinstance(node, ast.Call):
        return False
    use = file.use(node.func)
    if use is None or not use.api.startswith("torch."):
        return False
    if use.api in _MAKING:
        return bool(node.args) and _is_number(node.args[0], file)
    is_whole = not node.keywords and len(node.args) == (0 if use.is_member else 1)
    return is_whole and use.api.rpartition(".")[2] in _REDUCTIONS


def _is_number(node: ast.expr, file: FileEdit, depth: int = _DEPTH) -> bool:
    """Whether an expression surely is a number, or an array without axes."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, file, depth)
    if isinstance(node, ast.BinOp):
        return all(_is_number(part, file, depth) for part in (node.left, node.right))
    if isinstance(node, ast.Name) and depth:
        values = all_values_of(node, file)
        return bool(values) and all(_is_number(value, file, depth - 1) for value in values)
    if isinstance(node, ast.Attribute):
        return node.attr in _CONSTANTS and bool(_package(node, file))
    return isinstance(node, ast.Call) and _gives_number(node, file, depth)


def _gives_number(node: ast.Call, file: FileEdit, depth: int) -> bool:
    name, package = getattr(node.func, "attr", ""), _package(node.func, file)
    if package == "math" or getattr(node.func, "id", "") in _NUMBERS:
        return True
    if package != "numpy" or len(node.args) != 1:
        return False
    is_whole = name in _OF_ARRAY and not node.keywords
    return is_whole or (name in _OF_NUMBER and _is_number(node.args[0], file, depth))


def _package(node: ast.expr, file: FileEdit) -> str:
    """The package of numbers of which a name is a member: `math.pi`, `np.log`."""
    owner = getattr(getattr(node, "value", None), "id", "")
    for package in ("math", "numpy"):
        if owner and owner in imported_from(file.tree, (package,)):
            return package
    return ""
