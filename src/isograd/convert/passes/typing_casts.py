"""`typing.cast(T, x)`, which is x: the static graph refuses the call."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class TypingCasts:
    """`cast(nn.ModuleDict, block)`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a type that is only said",
            """
            from typing import cast


            def f(x: torch.Tensor, y: torch.Tensor):
                return cast(torch.Tensor, x) + 1
            """,
        ),
    )
    counterexamples = (
        Example(
            "another function of this name",
            """
            def cast(kind, x):
                return x


            def f(x: torch.Tensor, y: torch.Tensor):
                return cast(int, x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the value by itself."""
        assert isinstance(node, ast.Call)
        if len(node.args) != 2 or node.keywords or not _is_cast(node.func, file):
            return False
        layout.write(file, node, file.source(node.args[1]))
        file.forget(node.args[0])
        return False


def _is_cast(function: ast.expr, file: FileEdit) -> bool:
    if isinstance(function, ast.Attribute):
        name = getattr(function.value, "id", "")
        imported = [part for one in file.tree.of(ast.Import) for part in one.names]
        names = {part.asname or part.name for part in imported if part.name == "typing"}
        return function.attr == "cast" and name in names and not file.tree.binds(name, function)
    if not isinstance(function, ast.Name) or function.id in file.tree.stored:
        return False
    return any(
        part.name == "cast" and (part.asname or part.name) == function.id
        for one in file.tree.of(ast.ImportFrom)
        if one.module == "typing"
        for part in one.names
    )
