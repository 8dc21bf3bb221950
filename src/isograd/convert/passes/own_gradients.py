"""`torch.autograd.Function` as a cell with `bprop`, which the static graph runs."""

from __future__ import annotations

import ast
import re

from isograd.convert.analysis.own_gradients import FUNCTIONS, OwnGradient, own_gradient
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.tree import is_none

_DEFINITION = re.compile(r"def(\s+|\\\r?\n)+(forward|backward)\b")
_CELL = {True: "composites.FunctionCell", False: "nn.Cell"}


class OwnGradients:
    """A function whose backward needs its inputs, its output and numbers alone."""

    kinds = (ast.ClassDef,)
    stage = Stage.EARLY
    examples = (
        Example(
            "an input that is saved",
            """
            class Swish(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x * torch.sigmoid(x)

                @staticmethod
                def backward(ctx, slope):
                    (x,) = ctx.saved_tensors
                    s = torch.sigmoid(x)
                    return slope * s * (1 + x * (1 - s))

            def f(x: torch.Tensor):
                return Swish.apply(x)
            """,
        ),
        Example(
            "a number that is kept",
            """
            class Reversed(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, factor):
                    ctx.factor = factor
                    return x.view_as(x)

                @staticmethod
                def backward(ctx, slope):
                    return -ctx.factor * slope, None

            def f(x: torch.Tensor):
                return Reversed.apply(x, 0.5)
            """,
        ),
        Example(
            "what forward computed on its way",
            """
            class Softplus(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    e = torch.exp(x)
                    ctx.save_for_backward(e)
                    return torch.log1p(e)

                @staticmethod
                def backward(ctx, slope):
                    (e,) = ctx.saved_tensors
                    return slope * e / (1 + e)

            def f(x: torch.Tensor):
                return Softplus.apply(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "what a helper computed, which may be no tensor",
            """
            def halves(x):
                return len(x) // 2

            class Halved(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    n = halves(x)
                    ctx.n = n
                    return x / n

                @staticmethod
                def backward(ctx, slope):
                    return slope / ctx.n

            def f(x: torch.Tensor):
                return Halved.apply(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the class as a cell, and one of it as its `apply`."""
        assert isinstance(node, ast.ClassDef)
        use = file.use(node.bases[0]) if node.bases else None
        if use is None or use.api not in FUNCTIONS:
            return False
        found = own_gradient(node, file.tree.module)
        if found is None:
            return False
        file.replace(node.bases[0], file.name(_CELL[file.settings.records_gradients]))
        file.forget(node.bases[0])
        file.uses += 1
        file.converted += 1
        _write_forward(found, file)
        _write_backward(found, file)
        line = file.text.line_end(node.end_lineno or node.lineno)
        indent = " " * node.col_offset
        new = file.text.newline
        made = f"{node.name}()"
        if found.carried:
            made = f"{file.name('composites.ResultAlone')}({made}, {len(found.slopes)})"
        file.text.insert(line, f"{new}{new}{new}{indent}{node.name}.apply = {made}")
        return True


def _write_forward(found: OwnGradient, file: FileEdit) -> None:
    _write_head(found.forward, "construct", file)
    file.replace(found.forward.args.args[0], "self")
    for statement in found.gone:
        file.leave_out(statement)
    last = found.forward.body[-1]
    if found.carried and isinstance(last, ast.Return) and last.value is not None:
        more = "".join(f", {name}" for name in found.carried)
        if not isinstance(last.value, ast.Tuple):
            file.text.insert(file.text.span(last.value)[1], more)
        else:
            file.text.insert(file.text.span(last.value.elts[-1])[1], more)


def _write_backward(found: OwnGradient, file: FileEdit) -> None:
    _write_head(found.backward, "bprop", file)
    given = ", ".join(("self", *found.inputs, "out"))
    file.replace(found.backward.args.args[0], given)
    if len(found.slopes) > 1 or found.carried:
        start, end = file.text.span(found.slopes[0])[0], file.text.span(found.slopes[-1])[1]
        file.text.replace(start, end, "dout")
        for slope in found.slopes:
            file.forget(slope)
        names = ", ".join(slope.arg for slope in found.slopes)
        taken = "dout"
        if found.carried:
            taken = f"dout[:{len(found.slopes)}]" if len(found.slopes) > 1 else "dout[0]"
        first = found.backward.body[0]
        indent = " " * first.col_offset
        at = file.text.line_start(first.lineno)
        file.text.insert(at, f"{indent}{names} = {taken}{file.text.newline}")
    for node, code in found.read:
        file.replace(node, code)
        file.forget(node)
    for part in ast.walk(found.backward):
        if isinstance(part, ast.Return) and part.value is not None:
            _write_returned(part.value, found, file)


def _write_returned(value: ast.expr, found: OwnGradient, file: FileEdit) -> None:
    """A tuple with a gradient for each input: zeros where torch has None for a tensor."""
    if not isinstance(value, ast.Tuple):
        start, end = file.text.span(value)
        file.text.insert(start, "(")
        file.text.insert(end, ",)")
        return
    for part, name in zip(value.elts, found.inputs, strict=True):
        if is_none(part) or getattr(part, "id", "") in found.none_names:
            file.replace(part, f"{file.name('composites.no_gradient')}({name})")
            file.forget(part)


def _write_head(function: ast.FunctionDef, name: str, file: FileEdit) -> None:
    """The method's new name, without its decorator."""
    text = file.text
    first = text.line_start(function.decorator_list[0].lineno)
    text.replace(first, text.line_start(function.lineno), "")
    file.forget(function.decorator_list[0])
    match = _DEFINITION.search(text.original, *text.span(function))
    assert match is not None
    text.replace(match.start(2), match.end(2), name)
