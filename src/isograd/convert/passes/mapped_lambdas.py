"""`map(lambda t: t[:n], kv)` in a pass: the static graph refuses lambdas that read other names."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward

#: What goes through all of its argument at once.
_WHOLE = frozenset("list tuple zip sum max min sorted any all dict".split())
_INNER = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


class MappedLambdas:
    """`map` of a lambda, where all that it gives is taken at once."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "three projections in one line",
            """
            class Net(nn.Module):
                def forward(self, q, k, v, n=2):
                    q, k, v = map(lambda t: t.reshape(n, -1), (q, k, v))
                    return torch.relu(q @ k.t()) @ v
            """,
        ),
    )
    counterexamples = (
        Example(
            "taken one by one",
            """
            class Net(nn.Module):
                def forward(self, x, n=2):
                    found = map(lambda t: t * n, (x, x))
                    return next(found)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a list of the same order."""
        assert isinstance(node, ast.Call)
        if getattr(node.func, "id", "") != "map" or file.tree.binds("map", node):
            return False
        if len(node.args) != 2 or node.keywords or not is_in_forward(node, file):
            return False
        function, given = node.args
        name = _argument(function)
        if not name or isinstance(given, ast.Starred) or not _is_taken_at_once(node, file):
            return False
        assert isinstance(function, ast.Lambda)
        values = file.source(given)
        if isinstance(given, (ast.IfExp, ast.Lambda)):
            values = f"({values})"
        body = file.source(function.body)
        body = f"({body})" if isinstance(function.body, ast.Tuple) and body[0] != "(" else body
        file.replace(node, f"[{body} for {name} in {values}]")
        return True


def _argument(function: ast.expr) -> str:
    """The one argument of a lambda that computes a value of it; empty for anything else."""
    if not isinstance(function, ast.Lambda):
        return ""
    if any(isinstance(part, _INNER) for part in ast.walk(function.body)):
        return ""
    own = function.args
    others = (own.posonlyargs, own.kwonlyargs, own.defaults, own.vararg, own.kwarg)
    return own.args[0].arg if len(own.args) == 1 and not any(others) else ""


def _is_taken_at_once(node: ast.Call, file: FileEdit) -> bool:
    """Whether what it gives is unpacked, or goes into what goes through all of it."""
    around = file.tree.parents.get(node)
    if isinstance(around, ast.Assign):
        return all(isinstance(target, (ast.Tuple, ast.List)) for target in around.targets)
    if isinstance(around, ast.Call):
        return node in around.args and getattr(around.func, "id", "") in _WHOLE
    return isinstance(around, ast.Starred)
