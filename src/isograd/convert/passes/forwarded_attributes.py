"""`__getattr__` of modules that read of another: MindSpore asks before the other exists."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class

_FINDS = ("__getattr__", "__getattribute__")


class ForwardedAttributes:
    """A wrapper that has all that the module in it has."""

    kinds = (ast.FunctionDef,)
    examples = (
        Example(
            "a wrapper",
            """
            class Wrapped(nn.Module):
                def __init__(self, inner):
                    super().__init__()
                    self.inner = inner

                def __getattr__(self, name):
                    try:
                        return super().__getattr__(name)
                    except AttributeError:
                        return getattr(self.inner, name)
            """,
        ),
    )
    counterexamples = (
        Example(
            "an old name",
            """
            class Net(nn.Module):
                def __getattr__(self, name):
                    return super().__getattr__("new" if name == "old" else name)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write a decorator that keeps MindSpore's own questions from it."""
        assert isinstance(node, ast.FunctionDef)
        owner = file.tree.parents.get(node)
        if node.name != "__getattr__" or not isinstance(owner, ast.ClassDef):
            return False
        if not is_module_class(owner, file) or not _reads_own(node, file):
            return False
        line = file.text.line_start(node.lineno)
        indent = " " * node.col_offset
        if file.text.original[line : line + node.col_offset].strip():
            return False  # behind a colon
        decorator = f"@{file.name('composites.asked_by_users')}"
        file.text.insert(line, f"{indent}{decorator}{file.text.newline}")
        return False


def _reads_own(function: ast.FunctionDef, file: FileEdit) -> bool:
    """Whether a method reads anything of its object, other than by what `super()` has."""
    own = next((part.arg for part in function.args.args), "")
    for part in file.tree.walked(function):
        if isinstance(part, ast.Name) and part.id == own:
            parent = file.tree.parents.get(part)
            called = parent.func if isinstance(parent, ast.Call) else None
            is_super = getattr(called, "id", "") == "super"
            if not is_super and getattr(called, "attr", "") not in _FINDS:
                return True
    return False
