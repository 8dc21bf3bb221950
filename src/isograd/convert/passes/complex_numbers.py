"""Complex numbers, of which MindSpore's operators take few."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.complex_numbers import writes_complex
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.scan.values import Plain, Tensor

#: In projects with complex numbers: the absolute value, which is complex in MindSpore, and what
#: takes real matrices alone there.
INSTEAD = {
    "ops.abs": "composites.absolute",
    "ops.l1_loss": "composites.l1_loss",
    "composites.eigh": "composites.hermitian_eigh",
    "composites.eigvalsh": "composites.hermitian_eigvalsh",
    "composites.cholesky": "composites.hermitian_cholesky",
    "composites.linalg_svd": "composites.complex_linalg_svd",
    "composites.svd": "composites.complex_svd",
    "ops.svd": "composites.singular_values",
    "composites.matrix_exp": "composites.complex_matrix_exp",
    "ops.slogdet": "composites.complex_slogdet",
    "composites.linalg_norm": "composites.complex_linalg_norm",
    "composites.matrix_norm": "composites.complex_matrix_norm",
    "composites.condition_number": "composites.complex_condition_number",
}
#: What MindSpore's own functions make of real numbers alone.
_RANDOM = frozenset(f"torch.{name}" for name in "rand randn rand_like randn_like".split())
_DTYPES = frozenset(f"torch.{name}" for name in "complex64 cfloat complex128 cdouble".split())
_IN_PARTS: dict[type[ast.operator], str] = {
    ast.Mult: "composites.product",
    ast.Div: "composites.quotient",
}
#: MindSpore's own take complex tensors and real ones, but no number of Python's.
_BESIDE_NUMBERS: dict[type[ast.operator], str] = {
    ast.Add: "composites.complex_sum",
    ast.Sub: "composites.complex_difference",
}
#: What gives complex numbers, and methods that give what they are asked of in another form.
_COMPLEX = frozenset(
    (
        *(
            f"torch.fft.{name}"
            for name in "fft ifft rfft fft2 ifft2 rfft2 fftn ifftn rfftn".split()
        ),
        *(f"torch.{name}" for name in "view_as_complex polar complex".split()),
    )
)
_KEEPING = frozenset(
    "conj reshape view unsqueeze squeeze transpose permute expand flatten to contiguous clone "
    "detach".split()
)
#: What makes a tensor of numbers as they are written.
_OF_VALUES = frozenset(f"torch.{name}" for name in "tensor as_tensor full".split())
_NUMBER = "MindSpore's operators take no complex number of Python's: {0} raises"
_MAY_BE = "if {0} is of tensors, it raises: MindSpore takes no complex number of Python's"
_ADVICE = "Compose it of real tensors: ops.Complex()(real, imaginary), for exp of cos and sin"


class ComplexNumbers:
    """`abs(spectrum)`, which is complex in MindSpore, and `x ** 1j`, which raises there."""

    kinds = (ast.Call, ast.Constant)
    examples = (
        Example(
            "an imaginary exponent",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.exp(x ** 1j)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a real exponent",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.exp(x ** 2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a runtime function, or report it."""
        if isinstance(node, ast.Call):
            return _random(node, file) or _triangle(node, file) or _absolute(node, file)
        assert isinstance(node, ast.Constant)
        if isinstance(node.value, complex) and "torch" in file.text.original:
            whole, is_sure = _operation(node, file)
            if whole is not None and not _is_written(whole):
                level = Level.FINISH if is_sure else Level.LOOK
                message = (_NUMBER if is_sure else _MAY_BE).format(ast.unparse(whole))
                file.finding(node, "complex-number", message, _ADVICE, level=level)
        return False


class ComplexProducts:
    """`spectrum * weights`: MindSpore's own has no gradient, and takes no real tensor beside it.

    Nor does it take a complex number of Python's, `1j * x`.
    """

    kinds = (ast.BinOp,)
    examples = (
        Example(
            "a spectrum and real weights",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.fft.rfft(x) * y
            """,
        ),
    )
    counterexamples = (
        Example(
            "real tensors",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x * y
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write it in real parts."""
        assert isinstance(node, ast.BinOp)
        call = _IN_PARTS.get(type(node.op)) or _BESIDE_NUMBERS.get(type(node.op))
        if call is None or not file.settings.has_complex or _is_of_numbers(node):
            return False
        if type(node.op) in _BESIDE_NUMBERS and not _has_number(node):
            return False
        if not any(_is_complex(part, file, set()) for part in (node.left, node.right)):
            return False
        left, right = file.argument(node.left), file.argument(node.right)
        file.replace(node, f"{file.name(call)}({left}, {right})")
        file.uses += 1
        file.converted += 1
        return True


def _is_complex(node: ast.expr, file: FileEdit, seen: set[str]) -> bool:
    """Whether an expression, or what its name holds, was made of complex numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, complex)
    if isinstance(node, ast.UnaryOp):
        return _is_complex(node.operand, file, seen)
    if isinstance(node, ast.Subscript):
        return _is_complex(node.value, file, seen)
    if isinstance(node, ast.BinOp):
        return any(_is_complex(part, file, seen) for part in (node.left, node.right))
    if isinstance(node, ast.Call):
        api = file.api_of_call(node)
        if api in _COMPLEX or (api == "torch.conj" and _is_complex(node.args[0], file, seen)):
            return True
        if api in _OF_VALUES and any(writes_complex(part) for part in node.args):
            return True
        is_kept = isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        return is_kept and _is_complex(node.func.value, file, seen)  # type: ignore[attr-defined]
    name = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    if not name or name in seen:
        return False
    seen.add(name)
    if isinstance(node, ast.Attribute):
        owner = file.tree.owner(node)
        return owner is not None and any(
            _is_complex(part.value, file, seen)
            for part in file.tree.walked(owner)
            if isinstance(part, ast.Assign)
            and any(
                getattr(target, "attr", "") == node.attr and ast.unparse(target) == name
                for target in part.targets
            )
        )
    values = scope_of(node, file).values_of(name)
    if not values and not file.tree.binds(name, node):
        values = file.tree.values_of_module.get(name, [])
    return any(_is_complex(value, file, seen) for value in values)


def _is_written(whole: ast.expr) -> bool:
    """Whether an operation with a number of Python's is written otherwise by `ComplexProducts`."""
    return isinstance(whole, ast.BinOp) and type(whole.op) in (*_IN_PARTS, *_BESIDE_NUMBERS)


def _is_of_numbers(node: ast.BinOp) -> bool:
    """Whether both operands are numbers as they are written."""
    return _is_number(node.left) and _is_number(node.right)


def _has_number(node: ast.expr) -> bool:
    """Whether a complex number is written out among the operands of an expression."""
    if isinstance(node, ast.BinOp):
        return _has_number(node.left) or _has_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _has_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, complex)


def _random(node: ast.Call, file: FileEdit) -> bool:
    """`torch.randn(3, dtype=torch.cfloat)`."""
    api = file.api_of_call(node)
    if api not in _RANDOM:
        return False
    given = [part.value for part in node.keywords if part.arg == "dtype"]
    use = file.use(given[0]) if given else None
    if use is None or use.api not in _DTYPES:
        return False
    name = file.name(f"composites.{api.rpartition('.')[2]}")
    sizes = [part.value for part in node.keywords if part.arg in ("size", "input")]
    parts = [file.argument(part) for part in (*node.args, *sizes)]
    layout.write(file, node, f"{name}({', '.join((*parts, f'dtype={file.argument(given[0])}'))})")
    file.uses += 1
    file.converted += 1
    return True


def _triangle(node: ast.Call, file: FileEdit) -> bool:
    """`torch.triu(x)` and `x.tril(-1)` of what was made of complex numbers."""
    use = file.use(node.func)
    name = "" if use is None else use.api.removeprefix("torch.").removeprefix("Tensor.")
    if name not in ("triu", "tril") or not file.settings.has_complex:
        return False
    is_method = use is not None and use.is_member and isinstance(node.func, ast.Attribute)
    given = [node.func.value, *node.args] if is_method else [*node.args]  # type: ignore[attr-defined] # a method
    is_known = given and not any(isinstance(part, ast.Starred) for part in given)
    if not is_known or not _is_complex(given[0], file, set()):
        return False
    listed = [*map(file.argument, given), *(file.source(part) for part in node.keywords)]
    layout.write(file, node, f"{file.name(f'composites.complex_{name}')}({', '.join(listed)})")
    file.uses += 1
    file.converted += 1
    return True


def _absolute(node: ast.Call, file: FileEdit) -> bool:
    """`abs(x)`, where x is a tensor, or may be one: the runtime's takes numbers, too."""
    is_asked = isinstance(node.func, ast.Name) and node.func.id == "abs" and len(node.args) == 1
    if not is_asked or not file.spelling.instead or "torch" not in file.text.original:
        return False
    given = node.args[0]
    is_number = isinstance(file.facts.values.get(place(given)), Plain)
    if not is_number and not isinstance(given, (ast.Constant, ast.UnaryOp)):
        file.replace(node.func, file.name("composites.absolute"))
    return False


def _operation(node: ast.expr, file: FileEdit) -> tuple[ast.expr | None, bool]:
    """The operation that a number is part of, and whether it is known to be on a tensor."""
    inner, found = node, None
    for part in file.tree.above(node):
        if isinstance(part, ast.BinOp):
            operands = file.facts.operands.get(place(part), ())
            if any(isinstance(value, Tensor) for value in operands):
                return part, True
            other = part.right if part.left is inner else part.left
            if isinstance(other, ast.Call) and file.use(other.func) is not None:
                return part, True
            found = None if _is_number(other) and found is None else part
        elif isinstance(part, ast.Call) and file.api_of_call(part):
            return found, found is not None
        elif not isinstance(part, ast.UnaryOp):
            break
        assert isinstance(part, ast.expr)
        inner = part
    return found, False


def _is_number(node: ast.expr) -> bool:
    """Whether this is a number as it is written, with or without a sign."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
