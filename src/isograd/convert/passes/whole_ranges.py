"""`torch.arange(n, dtype=torch.int64)`, of which torch takes the whole part of each number."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.integers import is_integer
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import is_none

_ARANGE = "torch.arange"
_WHOLE = frozenset(("torch.int64", "torch.long"))
_NUMBERS = ("start", "end", "step")
_KNOWN = frozenset((*_NUMBERS, "dtype", "device", "layout", "pin_memory"))


class WholeRanges:
    """Ranges of integers whose ends may be fractions."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "an end that may be anything",
            """
            def f(x: torch.Tensor, y: torch.Tensor, n=3):
                found = torch.arange(1, n * 1.5, dtype=torch.long)
                return found, torch.arange(end=n, start=1, dtype=torch.int64, device=x.device)
            """,
        ),
    )
    counterexamples = (
        Example(
            "no dtype, or another one",
            """
            def f(n):
                return torch.arange(n), torch.arange(n, dtype=torch.float32)
            """,
        ),
        Example(
            "arguments that are not known",
            """
            def f(ends):
                return torch.arange(*ends, dtype=torch.int64)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's, of the whole part of each number."""
        assert isinstance(node, ast.Call)
        if file.api_of_call(node) != _ARANGE:
            return False
        given = {str(keyword.arg): keyword.value for keyword in node.keywords}
        numbers = _numbers(node, given)
        dtype = given.get("dtype")
        use = None if dtype is None else file.use(dtype)
        if use is None or use.api not in _WHOLE or given.keys() - _KNOWN:
            return False
        if not numbers or any(map(_is_unknown, numbers)) or "int" in file.tree.own_names:
            return False
        if all(is_integer(part, file.tree) for part in numbers):
            return False  # for the knowledge
        whole = ", ".join(_whole(part, file) for part in numbers)
        code = f"{file.name('ops.arange')}({whole}, dtype={file.name('ms.int64')})"
        layout.write_call(file, node, code)
        file.uses += 1
        file.converted += 1
        return True


def _numbers(node: ast.Call, given: dict[str, ast.expr]) -> list[ast.expr]:
    """The numbers in torch's order; none where one is missing before another."""
    if not given.keys() & set(_NUMBERS):
        return list(node.args)
    named = {**dict(zip(_NUMBERS, node.args, strict=False)), **given}
    is_whole = "end" in named and ("start" in named or "step" not in named)
    return [named[name] for name in _NUMBERS if name in named] if is_whole else []


def _is_unknown(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred) or is_none(node)


def _whole(node: ast.expr, file: FileEdit) -> str:
    source = file.argument(node)
    return source if is_integer(node, file.tree) else f"int({source})"
