"""`extra_repr` is `extend_repr`: what stands in the brackets of a module's text."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.modules import is_module_class
from isograd.convert.places import place
from isograd.scan.values import Instance, Made, is_module

_TORCH, _OWN = "extra_repr", "extend_repr"


class ExtraTexts:
    """The method, and where a class calls its own or that of a class above."""

    kinds = (ast.FunctionDef, ast.Attribute)
    examples = (
        Example(
            "a text",
            """
            class Scaled(nn.Module):
                def __init__(self, scale):
                    super().__init__()
                    self.scale = scale

                def extra_repr(self):
                    return f"{super().extra_repr()}scale={self.scale}"
            """,
        ),
    )
    counterexamples = (
        Example(
            "a class that is no module",
            """
            class Scaled:
                def extra_repr(self):
                    return "scaled"
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's name, which the runtime's modules have as well."""
        if isinstance(node, ast.FunctionDef):
            owner = file.tree.parents.get(node)
            if node.name == _TORCH and isinstance(owner, ast.ClassDef):
                if is_module_class(owner, file):
                    start, end = file.text.span(node)
                    at = file.text.original.index(_TORCH, start, end)
                    file.text.replace(at, at + len(_TORCH), _OWN)
            return False
        assert isinstance(node, ast.Attribute)
        if node.attr != _TORCH or not _is_modules(node, file):
            return False
        end = file.text.span(node)[1]
        file.text.replace(end - len(_TORCH), end, _OWN)
        return True


def _is_modules(node: ast.Attribute, file: FileEdit) -> bool:
    use = file.use(node)
    if use is not None:
        return use.api == f"torch.nn.Module.{_TORCH}"
    held, owner, value = file.facts.owners.get(place(node)), file.tree.owner(node), node.value
    if isinstance(held, (Instance, Made)):
        return is_module(held)
    if owner is None or not is_module_class(owner, file):
        return False
    is_super = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"
    return is_super or getattr(value, "id", "") == "self"
