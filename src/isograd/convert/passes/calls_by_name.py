"""`f = torch.bmm`, then `f(x, mat2=y)`: MindSpore's own functions have other names of arguments."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import all_values_of, scope_of
from isograd.knowledge.rewrite import parameters_of


class CallsByName:
    """Calls of a function of torch's that a name holds, by the names of its arguments.

    Where a function is a value, a port has MindSpore's own if that takes torch's first arguments
    in torch's order; so the call gives them by their places.
    """

    kinds = (ast.Call,)
    examples = (
        Example(
            "a function that a name holds",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                product = torch.bmm
                return product(x, mat2=y)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a name that may hold another function",
            """
            def f(x: torch.Tensor, y: torch.Tensor, product=max):
                return product(3, key=4)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the arguments without their names, where these come in their order."""
        assert isinstance(node, ast.Call)
        if not node.keywords or not isinstance(node.func, ast.Name):
            return False
        if file.use(node.func) is not None or any(map(_is_open, (*node.args, *node.keywords))):
            return False
        order = _places(node.func, file)
        names = [part.arg for part in node.keywords]
        if not order or order[len(node.args) : len(node.args) + len(names)] != names:
            return False
        given = [file.argument(part) for part in node.args]
        given += [file.argument(part.value) for part in node.keywords]
        layout.write(file, node, f"{file.source(node.func)}({', '.join(given)})")
        return True


def _is_open(argument: ast.AST) -> bool:
    """`*more` and `**more`, of which nothing is known."""
    return isinstance(argument, ast.Starred) or getattr(argument, "arg", "") is None


def _places(name: ast.Name, file: FileEdit) -> list[str | None]:
    """The arguments, in their order, of the one function of MindSpore's own that a name means."""
    uses = [file.use(value) for value in _values(name, file)]
    apis = {use.api if use is not None and use.is_sure else "" for use in uses}
    entry = file.entry(apis.pop()) if len(apis) == 1 else None
    if entry is None or entry.value.partition(".")[0] not in ("ops", "mint"):
        return []
    return [part.name for part in parameters_of(entry.signature) if part.kind == "positional"]


def _values(name: ast.Name, file: FileEdit) -> list[ast.expr]:
    """All that a name may hold here; nothing where anything but assignments may have bound it."""
    if name.id not in file.tree.stored:
        return []
    scope = scope_of(name, file)
    statements = scope.statements_of(name.id, name)
    if name.id in scope.parameters or not statements:
        return all_values_of(name, file)
    values = [
        one.value
        for one in statements
        if isinstance(one, ast.Assign) and all(isinstance(to, ast.Name) for to in one.targets)
    ]
    return values if len(values) == len(statements) else []
