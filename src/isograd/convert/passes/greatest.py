"""Python's `max` and `min` of tensors and numbers: in a graph no gradient passes through them."""

from __future__ import annotations

import ast

from isograd.convert.analysis.integers import is_integer
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward, may_be_compiled, scope_of

_NAMES = {"max": "greatest", "min": "least"}
#: What is asked of a tensor for numbers that are known where a graph is compiled.
_SIZES = frozenset("shape size dim ndim numel stride device dtype".split())


class GreatestOfNumbers:
    """`max(x.mean(), 0.1)`, `min(1.0, x.norm().item())` within what is compiled."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a tensor and a number",
            """
            class Net(nn.Module):
                def forward(self, x, y):
                    return x / max(y.mean(), 0.1)
            """,
        ),
        Example(
            "what a tensor holds",
            """
            class Net(nn.Module):
                def forward(self, x, y):
                    scale = min(y.norm().item(), 1.0)
                    return x * scale
            """,
        ),
    )
    counterexamples = (
        Example(
            "sizes",
            """
            class Net(nn.Module):
                def forward(self, x, y):
                    rows = max(x.shape[0], 4)
                    return x.sum() * max(rows, len(y)) * max(2, 0.5)
            """,
        ),
        Example(
            "what runs as it is written",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x / max(y.mean().item(), 0.1)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what takes the greatest by operators in a graph."""
        assert isinstance(node, ast.Call)
        name = getattr(node.func, "id", "")
        if name not in _NAMES or node.keywords or name in file.tree.own_names:
            return False
        given = node.args
        if len(given) == 1 and isinstance(given[0], (ast.List, ast.Tuple)):
            given = given[0].elts
        if len(given) < 2 or any(isinstance(part, ast.Starred) for part in given):
            return False
        unknown = [part for part in given if not is_known_number(part, file)]
        if not unknown or not is_compiled(node, unknown, file):
            return False
        values = ", ".join(map(file.argument, given))
        file.replace(node, f"{file.name(f'composites.{_NAMES[name]}')}({values})")
        return False


def is_known_number(node: ast.expr, file: FileEdit) -> bool:
    """Whether this is a number where a graph is compiled."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) or is_integer(node, file.tree)


def is_compiled(node: ast.Call, given: list[ast.expr], file: FileEdit) -> bool:
    """Whether this may run in a graph, and one of the values is seen to be of a tensor."""
    if not may_be_compiled(node, file):
        return False
    is_inside = is_in_forward(node, file)
    scope, values = scope_of(node, file), list(given)
    for part in given:
        if isinstance(part, ast.Name):
            values += scope.values_of(part.id)
    return any(
        _is_of_tensor(part, file, may_be_unsure=is_inside)
        for value in values
        for part in ast.walk(value)
    )


def _is_of_tensor(node: ast.AST, file: FileEdit, *, may_be_unsure: bool) -> bool:
    use = file.use(node)
    return (
        use is not None
        and (use.is_sure or may_be_unsure)
        and use.api.startswith("torch.")
        and use.api.rpartition(".")[2] not in _SIZES
    )
