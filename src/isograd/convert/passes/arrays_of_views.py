"""`x[1:].numpy()` into which is written: of a view MindSpore makes an array of its own (2.10)."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.indexes import parts_of
from isograd.convert.origins import is_taken_by_copy
from isograd.convert.passes.elements import may_be_positions, written_place
from isograd.convert.passes.example import Example
from isograd.convert.passes.indexed_copies import written_around
from isograd.convert.tree import pairs_of

#: What gives the tensor itself, for an array as well.
_SAME = frozenset("detach cpu data contiguous".split())
_SHAPED = frozenset("view reshape".split())
_CHANGING = frozenset("fill sort put partition".split())


class ArraysOfViews:
    """`x[1:].numpy()[0] = 1`, which changes x."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "an array of a slice, written to",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows = x[1:].numpy()
                rows[0] = 1
                return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "an array of a slice, read",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows = x[1:].numpy()
                return rows.sum()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the view of the whole tensor's array, which shares the memory."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or use.api != "torch.Tensor.numpy" or not _is_written(node, file):
            return False
        if not isinstance(node.func, ast.Attribute):
            return False
        view = _array(node.func.value, file)
        if not view or view.endswith(".asnumpy()"):
            return False
        file.uses += 1
        file.converted += 1
        file.replace(node, view)
        return True


def _is_written(node: ast.Call, file: FileEdit) -> bool:
    """Whether something writes into the array: by its name, or at once."""
    parent = file.tree.parents.get(node)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Store)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _CHANGING
    return isinstance(parent, ast.Assign) and any(
        value is node and ast.unparse(target) in written_around(target, node, file)
        for one in parent.targets
        for target, value in pairs_of(one, parent.value)
    )


def _indices(node: ast.expr) -> list[ast.AST]:
    """The parts of an index or of a shape."""
    if isinstance(node, ast.Subscript):
        return list(ast.walk(node.slice))
    return [part for one in getattr(node, "args", ()) for part in ast.walk(one)]


def _array(node: ast.expr, file: FileEdit) -> str:
    """The view of the array of what is behind an expression; empty where numpy would copy."""
    is_view = isinstance(node, ast.Attribute) and (node.attr == "T" or node.attr in _SAME)
    if any(isinstance(part, ast.Call) for part in _indices(node)):
        return ""  # which is written otherwise
    if isinstance(node, (ast.Name, ast.Attribute)) and not is_view:
        return f"{written_place(node, file)}.asnumpy()"
    if isinstance(node, ast.Subscript):
        is_part = any(isinstance(part, ast.Slice) for part in parts_of(node.slice))
        is_copy = is_taken_by_copy(node) or may_be_positions(node.slice, node, file)
        inner = _array(node.value, file)
        if not inner or is_copy or not is_part:
            return ""
        return f"{inner}[{file.text.raw(node.slice)}]"
    if isinstance(node, ast.Attribute):
        inner = _array(node.value, file)
        return f"{inner}.T" if inner and node.attr == "T" else inner
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    use, name = file.use(node.func), node.func.attr
    if use is None or not use.api.startswith("torch.Tensor.") or node.keywords:
        return ""
    inner = _array(node.func.value, file)
    if not inner or (name in _SAME and not node.args):
        return inner
    if name == "t":
        return f"{inner}.T"
    if name not in _SHAPED or any(file.use(part) is not None for part in node.args):
        return ""
    return f"{inner}.reshape({', '.join(map(file.text.raw, node.args))})"
