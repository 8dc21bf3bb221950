"""`torch.log(1 - torch.tanh(x) ** 2)`: what is left of 1, of which MindSpore's tanh has no digits.

On a CPU (2.10) it is up to 1.0e-4 off from about |x| > 4.5 on, and 1.00001 near 5.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert import layout
from isograd.convert.aliases import Scope
from isograd.convert.analysis.given_arguments import calls_of
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import first_argument

_TANHS = frozenset(("torch.tanh", "torch.Tensor.tanh", "torch.nn.functional.tanh"))
#: What has a pole at 1, or at 0 of what is left.
_POLES = frozenset("atanh arctanh log log1p log2 log10 logit rsqrt reciprocal".split())
_SQUARES = frozenset(("pow", "square"))
#: What returns the numbers that it is given, mostly.
_PASSING = _SQUARES | frozenset(
    """abs neg clamp clip clamp_min clamp_max clone detach contiguous view reshape flatten squeeze
    unsqueeze float double to expand t transpose permute cat stack""".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 12


class SaturatedTanhs:
    """A tanh whose distance from 1 is read, as densities of actions between -1 and 1 do."""

    kinds = (ast.Call,)
    after = ("RealFunctions",)
    examples = (
        Example(
            "the density of a squashed action",
            """
            def f(x: torch.Tensor):
                y = torch.tanh(x)
                return y, -torch.log(2.0 * (1 - y.pow(2)) + 1e-6)
            """,
        ),
        Example(
            "its inverse",
            """
            def raw(action):
                return torch.atanh(action.clamp(-0.999999, 0.999999))

            def f(x: torch.Tensor):
                return raw(x.tanh())
            """,
        ),
    )
    counterexamples = (
        Example(
            "an activation",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                h = torch.tanh(x) * (1 - torch.sigmoid(y))
                return h, torch.log(1 - y ** 2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime's, which is exact."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.api not in _TANHS or len(node.args) + len(node.keywords) > 1:
            return False
        given = first_argument(node, "input")
        if use.is_member:
            assert isinstance(node.func, ast.Attribute)
            given = node.func.value
        if given is None or not _is_read(node, file):
            return False
        layout.write(file, node, f"{file.name('composites.tanh')}({file.argument(given)})")
        file.uses += 1
        file.converted += 1
        return True


def _is_read(tanh: ast.Call, file: FileEdit) -> bool:
    """Whether the distance of a tanh from 1 is read anywhere in the file."""
    return any(_holds(part, tanh, file, _DEEPEST) for part in _read(file))


def _read(file: FileEdit) -> Iterator[ast.expr]:
    """Expressions of the file whose distance from 1, or from 0, is read."""
    for call in file.tree.of(ast.Call):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name in _POLES:
            yield from _parts(call)
    for node in file.tree.of(ast.BinOp):
        if isinstance(node.op, ast.Sub) and getattr(node.left, "value", None) == 1:
            if _is_square(node.right):
                yield node.right


def _is_square(node: ast.expr) -> bool:
    """Whether an expression is `y * y`, `y ** 2`, `y.pow(2)` or `torch.square(y)`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return True
        return isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
    if isinstance(node, ast.Name):
        return True  # `squared = y ** 2`
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _SQUARES


def _holds(node: ast.expr, tanh: ast.Call, file: FileEdit, depth: int) -> bool:
    """Whether an expression's numbers are those of a tanh, up to steps with known numbers."""
    if node is tanh:
        return True
    if depth == 0:
        return False
    return any(_holds(part, tanh, file, depth - 1) for part in _made_of(node, file))


def _made_of(node: ast.expr, file: FileEdit) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name):
        yield from _of_name(node, scope_of(node, file), file)
    elif isinstance(node, ast.Attribute):
        for one in file.tree.of(ast.Assign):
            if any(getattr(target, "attr", "") == node.attr for target in one.targets):
                yield one.value
    elif isinstance(node, ast.BinOp):
        parts = (node.left, node.right)
        if any(map(_is_number, parts)) or isinstance(node.op, (ast.Pow, ast.Div, ast.Mult)):
            yield from parts
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, (ast.Tuple, ast.List)):
        yield from node.elts
    elif isinstance(node, ast.Call):
        yield from _of_call(node, file)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is computed of numbers that are written out."""
    return not any(isinstance(part, (ast.Name, ast.Call)) for part in ast.walk(node))


def _of_name(node: ast.Name, scope: Scope, file: FileEdit) -> Iterator[ast.expr]:
    yield from scope.values_of(node.id)
    function = file.tree.function(node)
    if node.id in scope.parameters and function is not None:
        for _, given in calls_of(function, file.tree):
            if node.id in given:
                yield given[node.id]


def _of_call(node: ast.Call, file: FileEdit) -> Iterator[ast.expr]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in _PASSING:
        yield from _parts(node)
        return
    for function in file.tree.of(*_FUNCTIONS):
        if function.name == name:
            for part in file.tree.walked(function):
                if isinstance(part, ast.Return) and part.value is not None:
                    yield part.value


def _parts(node: ast.Call) -> Iterator[ast.expr]:
    """The receiver and the first argument of a call."""
    if isinstance(node.func, ast.Attribute):
        yield node.func.value
    first = first_argument(node, "input")
    if first is not None:
        yield first
