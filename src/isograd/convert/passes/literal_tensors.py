"""`torch.tensor([1.0, 2.0])`: numbers that are written out have a dtype, and no more is needed."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none

_TENSOR = "torch.tensor"
_FLOATS = frozenset("float float32 double float64".split())
_INTEGERS = frozenset("int int32 long int64".split())
_GREATEST = {"int": 2**31, "int32": 2**31, "long": 2**63, "int64": 2**63}


class LiteralTensors:
    """Tensors of numbers, and of lists of numbers, as they are written in the code."""

    kinds = (ast.Call,)
    examples = (Example("numbers that are written out", "mean = torch.tensor([0.5, 0.25])"),)
    counterexamples = (
        Example(
            "numbers that are not",
            """
            def f(values):
                return torch.tensor(values)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's Tensor with the dtype that torch gives the numbers."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.is_member or use.api != _TENSOR or len(node.args) != 1:
            return False
        numbers = _numbers(node.args[0])
        if numbers is None:
            return False
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        wanted, learns = given.pop("dtype", None), given.pop("requires_grad", None)
        if given.keys() - {"device"} or not (learns is None or _is_false(learns)):
            return False
        name = "" if wanted is None or is_none(wanted) else _dtype(wanted, file)
        dtype = "" if name is None else _torchs_dtype(numbers, name)
        if not dtype:
            return False
        code = f"{file.name('ms.Tensor')}({file.source(node.args[0])}, {file.name(f'ms.{dtype}')})"
        layout.write_call(file, node, code)
        file.uses += 1
        file.converted += 1
        return True


def _numbers(value: ast.expr) -> list[bool | int | float] | None:
    """The numbers of a literal of one shape; None where it is none, or empty."""
    found: list[bool | int | float] = []
    return found if _shape(value, found) is not None else None


def _shape(value: ast.expr, found: list[bool | int | float]) -> tuple[int, ...] | None:
    if isinstance(value, (ast.List, ast.Tuple)):
        shapes = {_shape(part, found) for part in value.elts}
        shape = shapes.pop() if len(shapes) == 1 else None
        return None if shape is None else (len(value.elts), *shape)
    is_negative = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
    part = value.operand if isinstance(value, ast.UnaryOp) and is_negative else value
    number = part.value if isinstance(part, ast.Constant) else None
    if not isinstance(number, (int, float)) or (is_negative and isinstance(number, bool)):
        return None
    found.append(-number if is_negative else number)
    return ()


def _dtype(value: ast.expr, file: FileEdit) -> str | None:
    """The name of one of torch's dtypes; None where it may be something else."""
    use = file.use(value)
    if use is None or use.is_member or not use.is_sure or not isinstance(value, ast.Attribute):
        return None
    package, _, name = use.api.rpartition(".")
    return name if package == "torch" and name in (*_FLOATS, *_INTEGERS, "bool") else None


def _torchs_dtype(numbers: list[bool | int | float], name: str) -> str:
    """MindSpore's name of the dtype; empty where the numbers do not fit it as they are."""
    kinds = {type(number) for number in numbers}
    if not name:
        name = "float32" if float in kinds else "int64" if int in kinds else "bool"
    if name in _FLOATS:
        return "float64" if name in ("double", "float64") else "float32"
    if name == "bool":
        return "bool_" if kinds == {bool} else ""
    fits = float not in kinds and all(abs(number) < _GREATEST[name] for number in numbers)
    return "" if not fits else "int32" if name in ("int", "int32") else "int64"


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
