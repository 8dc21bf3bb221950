"""Calls of torch's that make leaves, and what makes them in a port."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.leaves import may_be_true
from isograd.convert.tree import is_true

_ASKS = "requires_grad"


def makes_leaf(value: ast.expr, file: FileEdit) -> bool:
    """`torch.randn(3, requires_grad=True)`, or with a value that the run gives."""
    return isinstance(value, ast.Call) and _asked(value, file) is not None


def leaf_of(value: ast.expr, file: FileEdit) -> str:
    """What makes a leaf in the port, where `makes_leaf` says that a call makes one."""
    assert isinstance(value, ast.Call)
    asked = _asked(value, file)
    assert asked is not None
    made = file.source(value)
    if asked.arg is not None and is_true(asked.value):
        return f"{file.name('composites.leaf')}({made})"
    said = file.source(asked.value)
    if asked.arg is None:  # `**options`
        said = f"{said}.get({_ASKS!r}, False)"
    return f"{file.name('composites.tensor_requires_grad_')}({made}, {said})"


def _asked(call: ast.Call, file: FileEdit) -> ast.keyword | None:
    """The argument that asks for a gradient, or that may."""
    api = file.api_of_call(call)
    if not api.startswith("torch.") or "torch.nn." in api:
        return None
    for part in call.keywords:
        if part.arg == _ASKS:
            return part if may_be_true(part.value) else None
    entry = file.entry(api)
    if entry is None or _ASKS not in (entry.signature or "") or not _is_passed_by_name(file):
        return None
    return next((p for p in call.keywords if p.arg is None and _is_plain(p.value)), None)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def _is_passed_by_name(file: FileEdit) -> bool:
    """Whether a file puts `requires_grad` in a dictionary, which `**` may pass on."""
    if any(
        isinstance(key, ast.Constant) and key.value == _ASKS
        for node in file.tree.of(ast.Dict)
        for key in node.keys
    ):
        return True
    return any(
        part.arg == _ASKS and not file.api_of_call(call).startswith("torch.")
        for call in file.tree.of(ast.Call)
        for part in call.keywords
    )
