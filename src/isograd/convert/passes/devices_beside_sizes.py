"""`b, n, device = *x.shape, x.device`: the static graph knows none of what stands in that tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.tree import names_of


class DevicesBesideSizes:
    """A tensor's device that is bound together with sizes."""

    kinds = (ast.Assign,)
    examples = (
        Example(
            "sizes and the device",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns, device = *x.shape, x.device
                return y.reshape(columns, rows), torch.ones(rows, device=device)
            """,
        ),
        Example(
            "the device ahead of what is left",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, *_, device, size = *x.shape, x.device, 2
                return torch.ones(rows, device=device) * size
            """,
        ),
    )
    counterexamples = (
        Example(
            "sizes alone",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                rows, columns = x.shape
                return y.reshape(columns, rows)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Bind the device on a line of its own."""
        assert isinstance(node, ast.Assign)
        target, value = node.targets[0], node.value
        if len(node.targets) > 1 or not isinstance(target, ast.Tuple):
            return False
        if not isinstance(value, ast.Tuple) or not (pairs := _devices(target, value, file)):
            return False
        start, text = file.text.span(node)[0], file.text
        indent = text.original[text.line_start(node.lineno) : start]
        if indent.strip():
            return False  # behind another statement
        names = [file.source(part) for part in target.elts if part not in pairs]
        kept = [part for part in value.elts if part not in pairs.values()]
        taken = ", ".join(map(file.source, kept))
        if len(kept) == 1 and isinstance(kept[0], ast.Starred):
            taken = file.source(kept[0].value)
            names = [f"{names[0]},"] if len(names) == 1 else names
        elif len(kept) == 1 and isinstance(target.elts[0], ast.Starred):
            taken = f"{taken},"
        lines = [f"{', '.join(names)} = {taken}"]
        lines += [f"{file.source(name)} = {file.source(held)}" for name, held in pairs.items()]
        layout.write_statement(file, node, f"{text.newline}{indent}".join(lines))
        return False


def _devices(target: ast.Tuple, value: ast.Tuple, file: FileEdit) -> dict[ast.expr, ast.expr]:
    """The names that take a device, each with it, where it may be read behind the others."""
    bound = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
    if not all(isinstance(part, ast.Name) for part in bound) or len(bound) < 2:
        return {}
    pairs: dict[ast.expr, ast.expr] = {
        name: held
        for name, held in _paired(target.elts, value.elts)
        if isinstance(held, ast.Attribute) and held.attr == "device" and held not in file.named
    }
    names = {part.id for part in bound if isinstance(part, ast.Name)}
    if len(pairs) == len(value.elts) or not all(
        names.isdisjoint(names_of(held)) for held in pairs.values()
    ):
        return {}
    return pairs


def _paired(
    names: Sequence[ast.expr], values: Sequence[ast.expr]
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The names with what each takes: up to the first `*` of either side, and behind the last."""
    stars = [
        n
        for parts in (names, values)
        for n, part in enumerate(parts)
        if isinstance(part, ast.Starred)
    ]
    if not stars and len(names) != len(values):
        return
    ahead = min([len(names), *stars])
    yield from zip(names[:ahead], values[:ahead], strict=True)
    for name, held in zip(reversed(names[ahead:]), reversed(values[ahead:]), strict=False):
        if isinstance(name, ast.Starred) or isinstance(held, ast.Starred):
            return
        yield name, held
