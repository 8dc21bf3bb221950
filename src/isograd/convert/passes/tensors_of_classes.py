"""Tensors that classes of the file hold: `total = torch.zeros(1)` in the body of one."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit


def is_of_class(name: str, file: FileEdit) -> bool:
    """Whether a class of the file may hold a tensor under a name, which all its objects read."""
    classes = {node.name for node in file.tree.of(ast.ClassDef)}
    for node in file.tree.of(ast.Assign, ast.AnnAssign) if classes else ():
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_held = any(
            part.attr == name and getattr(part.value, "id", "") in classes
            if isinstance(part, ast.Attribute)
            else getattr(part, "id", "") == name and file.tree.is_in_class_body(node)
            for part in targets
        )
        if is_held and node.value is not None and _makes_tensor(node.value, file):
            return True
    return False


def _makes_tensor(value: ast.expr, file: FileEdit) -> bool:
    """Whether functions of torch's compute a value; it may be no tensor for all that."""
    uses = (file.use(part.func) for part in ast.walk(value) if isinstance(part, ast.Call))
    return any(use is not None and not use.api.startswith("torch.nn.") for use in uses)
