"""`forward` is `construct`: where it is defined, and where it is called by name."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.located import place
from isograd.scan.values import ClassInfo, Instance, Made

_NAME = re.compile(r"def(\s+|\\\r?\n)+forward\b")
_OTHER = "torch.autograd.Function"


class Forward:
    """The methods of modules, and `x.forward(…)`."""

    kinds = (ast.FunctionDef, ast.Attribute, ast.Assign)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write `construct` for `forward`."""
        if isinstance(node, ast.FunctionDef):
            if node.name == "forward":
                self._defined(node, file)
            return False
        if isinstance(node, ast.Assign):
            self._assigned(node, file)
            return False
        assert isinstance(node, ast.Attribute)
        if node.attr != "forward" or not _is_modules(node, file):
            return False
        end = file.text.span(node)[1]
        file.text.replace(end - len("forward"), end, "construct")
        return True

    def _defined(self, node: ast.FunctionDef, file: FileEdit) -> None:
        parent = file.tree.parents.get(node)
        if not isinstance(parent, ast.ClassDef) or not is_module_class(parent, file):
            return
        start, end = file.text.span(node)
        found = _NAME.search(file.text.original, start, end)
        if found is not None:
            file.text.replace(found.end() - len("forward"), found.end(), "construct")
            file.uses += 1
            file.converted += 1

    def _assigned(self, node: ast.Assign, file: FileEdit) -> None:
        """`forward = …` in the body of a class."""
        parent = file.tree.parents.get(node)
        if not isinstance(parent, ast.ClassDef) or not is_module_class(parent, file):
            return
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == "forward":
                file.replace(target, "construct")


def is_module_class(node: ast.ClassDef, file: FileEdit) -> bool:
    """Whether a class is a module, or mixed into one."""
    info = file.class_info(node)
    if info is None or info.root == _OTHER:
        return False
    return info.is_module or info in file.settings.mixed


def _is_modules(node: ast.Attribute, file: FileEdit) -> bool:
    """Whether `x.forward` may be a module's: everything but a class that is known to be none."""
    owner = file.facts.owners.get(place(node))
    if isinstance(owner, Instance):
        is_mixed = owner.of in file.settings.mixed
        is_open = not owner.of.bases and "forward" not in owner.of.methods
        return owner.of.is_module or is_mixed or is_open
    if isinstance(owner, ClassInfo):
        return owner.is_module
    if isinstance(owner, Made):
        return not owner.api.startswith("torch.autograd")
    return True
