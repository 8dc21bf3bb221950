"""`w = layer.weight.data` that is written to: the Parameter itself."""

from __future__ import annotations

import ast

from isograd.convert.data_aliases import is_data, owner_of
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import is_without_gradient
from isograd.convert.passes.example import Example
from isograd.scan.names_in_place import changes_in_place

_INIT = "torch.nn.init."
#: What may be asked of a tensor without reading its numbers.
_ASKED = frozenset("shape size dim ndim dtype device numel is_floating_point".split())


class WrittenData:
    """Tensors' data that names hold, and where a forward method reads such a name."""

    kinds = (ast.Attribute, ast.Call, ast.Name)
    examples = (
        Example(
            "a name for a layer's data that is written to",
            """
            layer = nn.Linear(2, 2)
            w = layer.weight.data
            w.fill_(0.5)
            """,
        ),
    )
    counterexamples = (
        Example(
            "data that is only read",
            """
            layer = nn.Linear(2, 2)
            print(layer.weight.data.mean())
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the Parameter; what a loss is computed from is read without its gradient."""
        held = file.data_aliases
        if not held.values:
            return False
        if isinstance(node, ast.Name):
            return _read(node, file)
        if node not in held.values:
            return False
        owner, use = owner_of(node), file.use(node)
        if owner is None or (use is not None and use.api != "torch.Tensor.data"):
            return False
        is_tensor = not is_data(node) or (use is not None and use.is_sure)
        code = file.source(owner)
        file.replace(node, code if is_tensor else f"{file.name('composites.data_of')}({code})")
        file.uses += 1
        file.converted += 1
        return True


def _is_read(node: ast.Name, file: FileEdit) -> bool:
    """Whether something is computed from a name's numbers: not bound, returned or written to."""
    part: ast.AST = node
    parent = file.tree.parents.get(part)
    while isinstance(parent, (ast.Attribute, ast.Subscript)) or (
        isinstance(parent, ast.Call) and parent.func is part
    ):
        if isinstance(parent, ast.Attribute) and changes_in_place(parent.attr):
            return False
        part, parent = parent, file.tree.parents.get(parent)
    if isinstance(parent, ast.keyword):
        parent = file.tree.parents.get(parent)
    if isinstance(parent, ast.Call):
        use = file.use(parent.func)
        return use is not None and not use.api.startswith(_INIT) and not changes_in_place(use.api)
    return part is not node or isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare))


def _read(node: ast.Name, file: FileEdit) -> bool:
    """`F.linear(x, w)` and `w * x`, where w is the data of a Parameter."""
    if not isinstance(node.ctx, ast.Load) or not file.holds_data(node):
        return False
    if is_without_gradient(node, file) or not _is_read(node, file):
        return False
    parent = file.tree.parents.get(node)
    if isinstance(parent, (ast.Attribute, ast.Subscript)):
        name = getattr(parent, "attr", "")
        is_place = isinstance(getattr(parent, "ctx", None), ast.Store)
        if name in _ASKED or is_place:
            return False
    file.replace(node, f"{file.name('ops.stop_gradient')}({node.id})")
    return False
