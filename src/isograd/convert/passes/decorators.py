"""Decorators of torch's compilers go away: the function computes the same without them."""

from __future__ import annotations

import ast

from isograd.convert import types_and_settings
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage


class Decorators:
    """`@torch.jit.ignore`, `@torch.fx.wrap` and their like."""

    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    stage = Stage.EARLY
    examples = (
        Example(
            "a function that torch.jit leaves out",
            """
            @torch.jit.ignore
            def f(x: torch.Tensor, y: torch.Tensor):
                return x + y
            """,
        ),
    )
    counterexamples = (
        Example(
            "a decorator of Python's",
            """
            import functools

            @functools.lru_cache
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.relu(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave out each decorator that is none of the arithmetic's."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if file.named.get(function) in types_and_settings.DECORATORS:
                leave_out(decorator, file)
        return False


def leave_out(decorator: ast.expr, file: FileEdit) -> None:
    """Remove the decorator with its lines; a comment on them stays."""
    text = file.text
    start = text.line_start(decorator.lineno)
    assert decorator.end_lineno is not None
    end = text.line_start(decorator.end_lineno + 1)
    comments = file.comments_between(start, end)
    indent = text.original[start : text.original.index("@", start)]
    text.replace(start, end, "".join(f"{indent}{comment}{text.newline}" for comment in comments))
    file.forget(decorator)
    file.uses += 1
    file.converted += 1
