"""Networks start in training, as torch's do: `net = Net().set_train()` where they are built."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.located import WITH_MODES, place
from isograd.convert.passes.modules import is_module_class

_SEQUENTIAL = "torch.nn.Sequential"


class Building:
    """Calls that build a whole network: outside of modules, which get the mode from above."""

    kinds = (ast.Call,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Add the call that starts training."""
        assert isinstance(node, ast.Call)
        if place(node) in file.facts.built:
            start_training(node, file)
        return False


def start_training(node: ast.Call, file: FileEdit) -> None:
    """Start training behind a call that builds a network, if its layers have modes."""
    layers = file.settings.layers
    if not layers.has_modes or layers.every or _is_part(node, file):
        return
    file.replace(node, f"{file.source(node)}.set_train()")


def starts_training(node: ast.Call, file: FileEdit) -> bool:
    """Whether a layer of torch's is a network of its own.

    A Sequential is one, unless only modules ask for it; of other layers, one that is called where
    it is bound.
    """
    api = file.api_of_call(node)
    function = file.tree.function(node)
    if api == _SEQUENTIAL:
        return function is None or not _makes_parts(function, file)
    parent = file.tree.parents.get(node)
    if not isinstance(parent, ast.Assign) or WITH_MODES.match(api) is None:
        return False
    name = getattr(parent.targets[0], "id", "")
    return bool(name) and any(
        isinstance(part, ast.Call) and getattr(part.func, "id", "") == name
        for part in ast.walk(function or file.tree.module)
    )


def _makes_parts(function: ast.FunctionDef | ast.AsyncFunctionDef, file: FileEdit) -> bool:
    """Whether all of the file that names a function are modules, and calls that build them."""
    names = [part for part in file.tree.of(ast.Name) if part.id == function.name]
    return bool(names) and all(_is_part(part, file) for part in names)


def _is_part(node: ast.AST, file: FileEdit) -> bool:
    """Whether a module is built by another one, or as an argument of one."""
    for part in file.tree.above(node):
        if isinstance(part, ast.ClassDef) and is_module_class(part, file):
            return True
        if isinstance(part, ast.Call):
            is_built = place(part) in file.facts.built
            if is_built or file.names.kind(file.api_of_call(part)) == "M":
                return True
    return False
