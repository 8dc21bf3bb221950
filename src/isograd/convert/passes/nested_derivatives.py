"""Derivatives of derivatives by torch.func, which MindSpore 2.10 has only where it compiles."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.passes.reach_of_writes import scope_of

_HESSIANS = frozenset(("torch.func.hessian", "torch.autograd.functional.hessian"))
_FIRST = frozenset(
    (
        *(f"torch.func.{name}" for name in ("grad", "grad_and_value", "jacrev", "jacfwd", "jvp")),
        *("torch.func.vjp", "torch.func.linearize", "torch.autograd.functional.jacobian"),
        *(f"torch.autograd.functional.{name}" for name in ("vjp", "jvp")),
    )
)
_LAMBDA = "MindSpore's compiler does not read a lambda that stands in a call"
_LAMBDA_ADVICE = "Write the function with def, and give its name to the call."
_NESTED = "MindSpore 2.10 has no derivative of a derivative that it does not compile"
_NESTED_ADVICE = "Compile the second derivative: mindspore.jit(mindspore.grad(mindspore.grad(f)))."


class NestedDerivatives:
    """A derivative whose function is a derivative, and a Hessian of a lambda in the call."""

    kinds = (ast.Call,)
    stage = Stage.SPECIAL
    examples = (
        Example(
            "a Hessian of a lambda",
            """
            import torch

            def f(x: torch.Tensor):
                return torch.func.hessian(lambda a: (a * a).sum())(x)
            """,
        ),
        Example(
            "a gradient of a gradient",
            """
            import torch

            def f(x: torch.Tensor):
                return torch.func.grad(torch.func.grad(torch.sin))(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a Hessian of a function that is defined",
            """
            import torch

            def squares(a: torch.Tensor):
                return torch.sum(a * a)

            def f(x: torch.Tensor):
                return torch.func.hessian(squares)(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report the call; other passes write it."""
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if api not in _HESSIANS and api not in _FIRST:
            return False
        named = [part.value for part in node.keywords if part.arg == "func"]
        function = next(iter([*node.args[:1], *named]), None)
        if function is None:
            return False
        if isinstance(function, ast.Lambda) and api in _HESSIANS:
            file.finding(node, "not-converted", _LAMBDA, _LAMBDA_ADVICE, api=api)
        elif _is_derivative(function, file):
            file.finding(node, "not-converted", _NESTED, _NESTED_ADVICE, api=api)
        return False


def _is_derivative(function: ast.expr, file: FileEdit) -> bool:
    """Whether a function is what one of torch's transforms makes, by a name or as it is."""
    values = [function]
    if isinstance(function, ast.Name):
        values = scope_of(function, file).values_of(function.id)
    return any(
        isinstance(value, ast.Call) and file.api_of_call(value) in _FIRST | _HESSIANS
        for value in values
    )
