"""A name that only a loop or a branch binds is bound before it: the static graph asks for that."""

from __future__ import annotations

import ast

from isograd.convert.analysis.unbound_reads import unbound_reads
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward
from isograd.convert.training.record_writing import is_maker


class NamesBoundBefore:
    """`up = None` before the loop that binds `up`, where the forward method reads it afterwards."""

    kinds = (ast.FunctionDef,)
    examples = (
        Example(
            "the last round's value",
            """
            class Net(nn.Module):
                def forward(self, x):
                    for scale in range(3):
                        up = torch.relu(x) * scale
                    return up
            """,
        ),
        Example(
            "one branch binds what another place reads",
            """
            class Net(nn.Module):
                def forward(self, x, wide=True):
                    if wide:
                        rows = x.shape[0]
                    x = torch.relu(x)
                    return x * rows if wide else x
            """,
        ),
    )
    counterexamples = (
        Example(
            "both branches bind it",
            """
            class Net(nn.Module):
                def forward(self, x, wide=True):
                    if wide:
                        rows = x.shape[0]
                    else:
                        rows = 1
                    return torch.relu(x) * rows
            """,
        ),
        Example(
            "read within the round",
            """
            class Net(nn.Module):
                def forward(self, x):
                    for scale in range(3):
                        up = torch.relu(x) * scale
                        x = x + up
                    return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind to None what no path before binds; torch raises an error for it where none does."""
        assert isinstance(node, ast.FunctionDef)
        if file.tree.function(node.body[0]) is not node:
            return False
        is_forward = is_in_forward(node.body[0], file)
        unbound = unbound_reads(node) if is_forward or file.settings.compiles_steps else {}
        if not unbound or not (is_forward or _is_run_by_step(node, file)):
            return False
        lines: dict[ast.stmt, list[str]] = {}
        for name, place in unbound.items():
            lines.setdefault(place, []).append(f"{name} = None")
        text = file.text
        for place, added in lines.items():
            start = text.line_start(place.lineno)
            indent = text.original[start : text.span(place)[0]]
            if not indent.strip():  # else it shares its line with others
                text.insert(start, "".join(f"{indent}{one}{text.newline}" for one in added))
        return False


def _is_run_by_step(function: ast.FunctionDef, file: FileEdit) -> bool:
    """Whether a function is part of a compiled step of the file, or one calls it by its name."""
    functions = file.tree.of(ast.FunctionDef)
    waiting: list[ast.AST] = [*filter(is_maker, functions)]
    seen = set[ast.AST]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        called = {getattr(node, "id", "") for node in file.tree.walked(one)}
        waiting += [other for other in functions if other.name in called]
    return not seen.isdisjoint((function, *file.tree.above(function)))
