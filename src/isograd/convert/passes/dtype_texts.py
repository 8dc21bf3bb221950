"""`str(x.dtype)`, which is 'torch.float32' in torch and 'Float32' in MindSpore."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of

_TEXT = "composites.dtype_text"


class DtypeTexts:
    """The text of a dtype; the dtype itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a dtype's name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                kind = str(x.dtype).split('.')[1]
                return x * 2 if kind == 'float32' else y
            """,
        ),
        Example(
            "a dtype that is looked up by its text",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                sizes = {'torch.float32': 4, 'torch.float64': 8}
                kind = x.dtype
                return x * sizes[str(torch.float64)] + sizes[repr(kind)]
            """,
        ),
    )
    counterexamples = (
        Example(
            "the text of a size",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x * len(str(x.shape[0]))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the text as torch does, whatever has a dtype."""
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Name) or node.func.id not in ("str", "repr"):
            return False
        if not file.facts.apis:
            return False
        if len(node.args) != 1 or node.keywords or not _is_dtype(node.args[0], file):
            return False
        if node.func.id in file.tree.own_names:
            return False
        file.replace(node.func, file.name(_TEXT))
        return False


def _is_dtype(node: ast.expr, file: FileEdit) -> bool:
    """Whether a value is an attribute dtype, a dtype of torch's by its name, or bound to one."""
    if isinstance(node, ast.Name):
        made = list(scope_of(node, file).statements_of(node.id, node))
        return bool(made) and all(
            isinstance(one, ast.Assign)
            and isinstance(one.value, ast.Attribute)
            and isinstance(one.targets[-1], ast.Name)
            and _is_dtype(one.value, file)
            for one in made
        )
    if not isinstance(node, ast.Attribute):
        return False
    use = file.use(node)
    if use is None:
        return node.attr == "dtype"
    return use.api == "torch.Tensor.dtype" or file.names.kind(file.named.get(node, "")) == "d"
