"""What is handed whole to functions of a file: a graph takes tensors, no objects with settings."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit


def setting_read_of(part: ast.expr, file: FileEdit) -> str:
    """An attribute that no tensor has, which a called function reads of what it is given here."""
    call = file.tree.parents[part]
    name = call.arg if isinstance(call, ast.keyword) else ""
    call = file.tree.parents[call] if name else call
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return ""
    for function in file.tree.module.body:
        if not isinstance(function, ast.FunctionDef) or function.name != call.func.id:
            continue
        places = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        own = name
        if not name and part in call.args and call.args.index(part) < len(places):
            own = places[call.args.index(part)]
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == own:
                if file.entry(f"torch.Tensor.{node.attr}") is None:
                    return node.attr
    return ""
