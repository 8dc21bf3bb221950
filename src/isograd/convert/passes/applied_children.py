"""Loops that call a module's children, which the static graph does not get from `cells()`."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.methods import is_in_method
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_WRITTEN = {
    "torch.nn.Module.children": "composites.children_to_apply",
    "torch.nn.Module.named_children": "composites.named_children_to_apply",
}
_LOOPS = (ast.For, ast.comprehension)


class AppliedChildren:
    """`for block in self.children(): x = block(x)` in a method of a network."""

    kinds = (ast.Call,)
    before = ("ModuleLoops",)
    examples = (
        Example(
            "children in their order",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)

                def forward(self, x):
                    for part in self.children():
                        x = part(x)
                    return x
            """,
        ),
        Example(
            "children with their names",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)

                def forward(self, x):
                    return {name: part(x) for name, part in self.named_children()}
            """,
        ),
    )
    counterexamples = (
        Example(
            "children that are not called",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first = nn.Linear(3, 3)

                def reset(self):
                    for part in self.children():
                        nn.init.zeros_(part.weight)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask for them when the graph is made."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        written = _WRITTEN.get(use.api if use is not None else "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if written is None or not isinstance(owner, ast.Name) or node.args or node.keywords:
            return False
        loop = file.tree.parents[node]
        if not isinstance(loop, _LOOPS) or loop.iter is not node:
            return False
        function = file.tree.function(node)
        first = function.args.args[:1] if isinstance(function, ast.FunctionDef) else []
        if [argument.arg for argument in first] != [owner.id]:
            return False  # when a graph is made, only the cell itself is known
        if not is_in_method(file.tree.above(node)) or not _is_called(loop, file):
            return False
        layout.write(file, node, f"{file.name(written)}({owner.id})")
        return True


def _is_called(loop: ast.For | ast.comprehension, file: FileEdit) -> bool:
    """Whether what a loop goes through is called in it."""
    bound = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    around = file.tree.parents[loop] if isinstance(loop, ast.comprehension) else loop
    return any(
        isinstance(part, ast.Call) and getattr(part.func, "id", "") in bound
        for part in ast.walk(around)
    )
