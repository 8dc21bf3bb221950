"""What code asks of torch itself, and sets in it: versions, compilers, backends."""

from __future__ import annotations

import ast

from isograd.convert import layout, plain
from isograd.convert.file import FileEdit
from isograd.knowledge.entry import Applicability


class Settings:
    """Statements that only set or tell something of torch's own machinery go away."""

    kinds = (ast.Expr, ast.Assign)
    is_early = True

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the statement out, or `pass` where a block would be empty."""
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            api = file.named.get(target, "") if len(node.targets) == 1 else ""
            if not api.startswith(plain.SETTINGS):
                return False
        else:
            assert isinstance(node, ast.Expr)
            if file.api_of_call(node.value) not in plain.STATEMENTS:
                return False
        assert isinstance(node, ast.stmt)
        file.leave_out(node)
        file.uses += 1
        file.converted += 1
        return True


class Questions:
    """`torch.jit.is_scripting()`, `hasattr(torch, "compile")`, `torch.jit.annotate(T, x)`."""

    kinds = (ast.Call, ast.Subscript)
    is_early = True

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the answer that holds for a port."""
        if isinstance(node, ast.Subscript):
            return _final(node, file)
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if api in plain.ANSWERS and not _is_known(api, file):
            layout.write(file, node, plain.ANSWERS[api])
        elif api in plain.THROUGH and len(node.args) > plain.THROUGH[api]:
            if _is_known(api, file):
                return False
            kept = node.args[plain.THROUGH[api]]
            start, end = file.text.span(node)
            inner, stop = file.text.span(kept)
            file.text.replace(start, inner, "")
            file.text.replace(stop, end, "")
            file.done.add(node)
            file.done.update(ast.walk(node.func))
            for part in (*node.args, *node.keywords):
                if part is not kept:
                    file.forget(part)
            return True
        elif isinstance(node.func, ast.Name) and node.func.id == "hasattr":
            return _asks_for_name(node, file)
        else:
            return False
        file.forget(node)
        file.uses += 1
        file.converted += 1
        return True


def _is_known(api: str, file: FileEdit) -> bool:
    entry = file.entry(api)
    return entry is not None and bool(entry.rewrite) and entry.applicability is not Applicability.HAND


def _asks_for_name(node: ast.Call, file: FileEdit) -> bool:
    """`hasattr(torch.nn.functional, "x")`: true of a port where x has a counterpart."""
    if len(node.args) != 2 or node.args[0] not in file.named:
        return False
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    api = file.names.canonical(f"{file.named[node.args[0]]}.{name.value}")
    entry = file.entry(api)
    is_there = entry is not None and entry.applicability is not Applicability.HAND
    file.replace(node, str(is_there))
    file.forget(node)
    file.uses += 1
    file.converted += 1
    return True


def _final(node: ast.Subscript, file: FileEdit) -> bool:
    """`torch.jit.Final[int]` is an int."""
    if file.named.get(node.value) != "torch.jit.Final":
        return False
    start, end = file.text.span(node)
    inner, stop = file.text.span(node.slice)
    file.text.replace(start, inner, "")
    file.text.replace(stop, end, "")
    file.done.update(ast.walk(node.value))
    return True
