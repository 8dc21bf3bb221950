"""`kept.pop()` in a forward pass, which no static graph takes, binds `kept[:-1]` to the name."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.changed_lists import Change, changed_name, changes_of
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import may_be_compiled

_TAKEN = "taken"


class ListChanges:
    """Methods that change a list of their own function, which no other name holds."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "what a U-Net keeps",
            """
            class Net(nn.Module):
                def forward(self, x):
                    kept = [x, x * 2]
                    kept.insert(0, x * 3)
                    for _ in range(3):
                        x = torch.cat((x, kept.pop()), 1)
                    return x
            """,
        ),
        Example(
            "an element that gets a name",
            """
            class Net(nn.Module):
                def forward(self, x):
                    found = [x, x * 2]
                    found.extend([x * 3, x * 4])
                    first = found.pop(0)
                    found.reverse()
                    return first - found[0]
            """,
        ),
    )
    counterexamples = (
        Example(
            "a list that another name holds",
            """
            class Net(nn.Module):
                def forward(self, x):
                    kept = [x, x * 2]
                    self.seen = kept
                    return kept.pop()
            """,
        ),
        Example(
            "a list outside of one",
            """
            def f(x: torch.Tensor):
                kept = [x, x * 2]
                return kept.pop() - kept.pop()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind the changed list to its name."""
        assert isinstance(node, ast.Call)
        if not changed_name(node) or not may_be_compiled(node, file):
            return False
        function = file.tree.function(node)
        found = () if function is None else changes_of(function)
        change = next((one for one in found if one.call is node), None)
        if change is None:
            return False
        _write(change, file)
        return True


def _write(change: Change, file: FileEdit) -> None:
    name, call, statement = change.name, change.call, change.statement
    given = [file.source(part) for part in call.args]
    if change.method != "pop":
        changed = {
            "insert": f"[{given[-1] if given else ''}] + {name}",
            "extend": f"{name} + {given[-1] if given else ''}",
            "reverse": f"{name}[::-1]",
        }[change.method]
        layout.write_statement(file, call, f"{name} = {changed}")
        return
    is_first = given == ["0"]
    element, rest = (f"{name}[0]", f"{name}[1:]") if is_first else (f"{name}[-1]", f"{name}[:-1]")
    if isinstance(statement, ast.Expr) and statement.value is call:
        layout.write_statement(file, call, f"{name} = {rest}")
        return
    if isinstance(statement, ast.Assign) and statement.value is call:
        target = statement.targets[0]
        if len(statement.targets) == 1 and isinstance(target, ast.Name):
            code = f"{target.id}, {name} = {element}, {rest}"
            layout.write_statement(file, statement, code)
            return
    taken = _new_name(file)
    start = file.text.line_start(statement.lineno)
    indent = file.text.original[start : start + statement.col_offset]
    line = f"{indent}{taken}, {name} = {element}, {rest}{file.text.newline}"
    file.text.insert(start, line)
    file.replace(call, taken)


def _new_name(file: FileEdit) -> str:
    used = {part.id for part in file.tree.of(ast.Name)}
    used |= {part.arg for part in file.tree.of(ast.arg)} | file.tree.own_names
    name = _TAKEN
    while name in used:
        name += "_"
    return name
