"""`x.to(y.device)`: MindSpore's context says where tensors lie, so that nothing is moved."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.elements import POSTFIX
from isograd.convert.passes.example import Example

_MOVE = "torch.Tensor.to"
_DEVICES = frozenset(("torch.Tensor.device", "torch.device"))


class DeviceMoves:
    """Tensors that are sent to a device, and the dtype that may stand beside it."""

    kinds = (ast.Call,)
    after = ("Casts",)
    examples = (
        Example(
            "to another tensor's device",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to(y.device)
            """,
        ),
        Example(
            "to a device by name",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns, device = *x.shape, x.device
                return y.to(device) + rows
            """,
        ),
        Example(
            "to a device as a dtype",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to('cuda', torch.float16)
            """,
        ),
    )
    counterexamples = (
        Example(
            "to a dtype alone",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.to(torch.float16)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the tensor as it is; what may be a dtype or a tensor is for other passes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not use.is_sure or use.api != _MOVE or not node.args:
            return False
        if any(keyword.arg != "non_blocking" for keyword in node.keywords):
            return False
        assert isinstance(node.func, ast.Attribute)
        if not _is_device(node.args[0], file):
            return False
        rest = [part for part in node.args[1:] if not _is_switch(part)]
        if rest and not (len(rest) == 1 and _is_dtype(rest[0], file)):
            return False
        value = node.func.value
        code = file.source(value)
        if not isinstance(value, POSTFIX):
            code = f"({code})"
        layout.write(file, node, f"{code}.astype({file.source(rest[0])})" if rest else code)
        file.uses += 1
        file.converted += 1
        return True


def _is_device(value: ast.expr, file: FileEdit) -> bool:
    """Whether an argument is a device: a text, another tensor's, or one that is made there."""
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (str, int)) and not isinstance(value.value, bool)
    use = file.use(value.func if isinstance(value, ast.Call) else value)
    if use is not None and use.is_sure and use.api in _DEVICES:
        return True
    return isinstance(value, ast.Name) and is_name_of_device(value, file)


def is_name_of_device(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name of the function holds nothing but devices: `device = x.device`.

    What is asked of something that is called a tensor's `device` there is one, whatever it is of.
    """
    stores = [
        part
        for part in file.tree.walked(file.tree.scope(name))
        if isinstance(part, ast.Name) and part.id == name.id and isinstance(part.ctx, ast.Store)
    ]
    values = [_bound_to(store, file) for store in stores]
    is_given = any(
        isinstance(part, ast.arg) and part.arg == name.id
        for part in file.tree.walked(file.tree.scope(name))
    )
    return bool(values) and not is_given and all(_is_asked(value, file) for value in values)


def _bound_to(store: ast.Name, file: FileEdit) -> ast.expr | None:
    """What an assignment binds to a name, also in `b, n, device = *x.shape, x.device`."""
    parent = file.tree.parents[store]
    if isinstance(parent, ast.Assign):
        return parent.value
    assign = file.tree.parents.get(parent)
    if not isinstance(parent, ast.Tuple) or not isinstance(assign, ast.Assign):
        return None
    if not isinstance(assign.value, ast.Tuple):
        return None
    behind = parent.elts[parent.elts.index(store) :]
    values = assign.value.elts[-len(behind) :]
    if len(values) < len(behind) or any(
        isinstance(part, ast.Starred) for part in (*values, *behind)
    ):
        return None
    return values[0]


def _is_asked(value: ast.expr | None, file: FileEdit) -> bool:
    use = None if value is None else file.use(value.func if isinstance(value, ast.Call) else value)
    return use is not None and use.api in _DEVICES


def _is_switch(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _is_dtype(value: ast.expr, file: FileEdit) -> bool:
    """Whether an argument names a dtype of torch's."""
    use = file.use(value)
    if use is None or use.is_member or not isinstance(value, ast.Attribute):
        return False
    return use.is_sure and use.api.count(".") == 1 and use.api not in _DEVICES
