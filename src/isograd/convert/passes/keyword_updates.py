"""`options.update(context=x)` in a pass is `options.update({'context': x})`."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import may_be_compiled


class KeywordUpdates:
    """A dictionary that takes its new values by keywords, which no static graph runs."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "what a pass was called with by name",
            """
            class Net(nn.Module):
                def __init__(self, inner):
                    super().__init__()
                    self.inner = inner
                    self.norm = nn.LayerNorm(4)

                def forward(self, x, **options):
                    options.update(context=self.norm(options["context"]))
                    return self.inner(x, **options)
            """,
        ),
    )
    counterexamples = (
        Example(
            "an object of the project's own",
            """
            class Net(nn.Module):
                def forward(self, x, meter):
                    meter.update(value=x.mean())
                    return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the keywords as a dictionary."""
        assert isinstance(node, ast.Call)
        call = node.func
        if not isinstance(call, ast.Attribute) or call.attr != "update" or node.args:
            return False
        named = [keyword.arg for keyword in node.keywords]
        if not named or None in named or not may_be_compiled(node, file):
            return False
        if not isinstance(call.value, ast.Name) or not _is_dictionary(call.value, file):
            return False
        items = [f"'{keyword.arg}': {file.source(keyword.value)}" for keyword in node.keywords]
        file.replace(node, f"{file.source(call)}({{{', '.join(items)}}})")
        return True


def _is_dictionary(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name is a function's `**options`, or bound to dictionaries written out alone."""
    function = file.tree.function(name)
    if function is None:
        return False
    bound = [
        part
        for part in ast.walk(function)
        if (isinstance(part, ast.arg) and part.arg == name.id)
        or (isinstance(part, ast.Name) and part.id == name.id and isinstance(part.ctx, ast.Store))
    ]
    if not bound:
        return False
    return all(part is function.args.kwarg or _is_given_one(part, file) for part in bound)


def _is_given_one(name: ast.AST, file: FileEdit) -> bool:
    above = file.tree.parents[name]
    if not isinstance(above, (ast.Assign, ast.AnnAssign)):
        return False
    value = above.value
    is_made = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict"
    is_made = is_made and "dict" not in file.tree.own_names
    return is_made or isinstance(value, (ast.Dict, ast.DictComp))
