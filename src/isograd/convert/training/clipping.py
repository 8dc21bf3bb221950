"""Where gradients may be clipped in a loop that becomes a compiled step."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Clip, EagerError, Form, Names, Repeated
from isograd.convert.training.paths import (
    block_of,
    bound_by,
    is_fixed,
    method_of,
    path_of,
    read_by,
    statement_call,
)

_NORM = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_")
_VALUE = ("torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad.clip_grad_value_")


_OTHERWISE = "gradients are clipped with other arguments than parameters() and a bound"
#: Other arguments that change nothing: the norm of torch's default, and how it computes.
_USUAL = {"norm_type": (2,), "error_if_nonfinite": (False,), "foreach": (None, True, False)}
_PLAIN = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
    ast.unaryop, ast.expr_context,
)  # fmt: skip


def is_clipping(call: ast.Call, file: FileEdit) -> bool:
    """Whether a call clips gradients."""
    return file.api_of_call(call) in (*_NORM, *_VALUE)


def clip_of(
    found: list[ast.Call],
    between: tuple[ast.stmt, ast.stmt],
    scaler: str,
    loop: Repeated,
    form: Form,
    file: FileEdit,
) -> Clip:
    """How a step clips; raises EagerError where it is not the usual way.

    found: the calls that clip.  between: `backward()` and the optimizer's step.
    """
    backward, update = between
    call = found[0]
    statement = file.tree.statement(call)
    if len(found) > 1 or not is_beside(statement, update, scaler, loop, file):
        raise EagerError(call, "gradients are clipped elsewhere than beside the step")
    if not backward.lineno <= statement.lineno <= update.lineno:
        raise EagerError(call, "gradients are clipped before backward() or behind the step")
    parameters, limit = _arguments(call)
    network, method = method_of(parameters)
    if method != "parameters" or not _is_computed_plainly(limit):
        raise EagerError(call, _OTHERWISE)
    bound = path_of(limit) or ast.unparse(limit)
    by_value = file.api_of_call(call) in _VALUE
    result = behind = ""
    if isinstance(statement, ast.Assign):
        result, is_apart = path_of(statement.targets[0]), file.tree.parents[backward] is not loop
        if len(statement.targets) > 1 or not result.isidentifier():
            raise EagerError(statement, "the norm of the gradients is kept")
        if form is Form.FUSED and (by_value or is_apart or result in bound_by(backward)):
            raise EagerError(statement, "the norm of the gradients is kept")
        if statement.value is not call:
            start, end = file.text.span(call)
            first, last = file.text.span(statement)
            original = file.text.original
            behind = f"{original[first:start]}{result}{original[end:last]}"
    above = file.tree.parents[statement]
    if isinstance(above, ast.If) and above in block_of(update, file):
        bound, statement = _under(above.test, bound), above
    return Clip(statement, network, bound, by_value, result, behind)


def _arguments(call: ast.Call) -> tuple[ast.expr, ast.expr]:
    """Whose gradients, and the bound; all else must be as torch has it where nothing is given."""
    given = {keyword.arg or "": keyword.value for keyword in call.keywords}
    given |= dict(zip(("parameters", "max_norm", "norm_type"), call.args, strict=False))
    if "clip_value" in given:
        given["max_norm"] = given.pop("clip_value")
    others = given.keys() - {"parameters", "max_norm"}
    is_usual = all(
        isinstance(value := given[name], ast.Constant) and value.value in _USUAL.get(name, ())
        for name in others
    )
    if not is_usual or len(call.args) > 3 or len(given) - len(others) < 2:
        raise EagerError(call, _OTHERWISE)
    return given["parameters"], given["max_norm"]


def _is_computed_plainly(bound: ast.expr) -> bool:
    """Whether an expression only computes with numbers that have names."""
    return all(isinstance(part, _PLAIN) for part in ast.walk(bound))


def _under(test: ast.expr, bound: str) -> str:
    """The bound under a condition; infinite, so that nothing is clipped, where it does not hold."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        opposite = ast.Compare(test.left, [ast.Is()], test.comparators)
        return f'float("inf") if {ast.unparse(opposite)} else {bound}'
    return f'{bound} if {ast.unparse(test)} else float("inf")'


def changing_bound(clip: Clip | None, loop: Repeated) -> set[str]:
    """The bound, if rounds may have different ones: one graph serves all."""
    if clip is None:
        return set()
    bound = bound_by(loop)
    if isinstance(loop, ast.FunctionDef):
        bound |= {part.arg for part in ast.walk(loop.args) if isinstance(part, ast.arg)}
    return {clip.bound} if read_by(ast.parse(clip.bound)) & bound else set()


def name_of_bound(clip: Clip, names: Names) -> str:
    """A name in the step for the bound."""
    is_path = bool(path_of(ast.parse(clip.bound, mode="eval").body))
    found = re.sub(r"\W+", "_", clip.bound).strip("_") if is_path else "bound"
    while found in {*names.inputs.values(), *names.objects.values()}:
        found += "_"
    return found


def is_beside(
    statement: ast.stmt, update: ast.stmt, scaler: str, loop: Repeated, file: FileEdit
) -> bool:
    """Whether it stands in the block of the step, or there under a condition that stays the same.

    update: the optimizer's step; scaler: the path of what may unscale the gradients before.
    """
    block = block_of(update, file)
    if statement in block:
        return isinstance(statement, (ast.Expr, ast.Assign))
    above = file.tree.parents[statement]
    if not isinstance(above, ast.If) or above not in block or above.orelse:
        return False
    others = [s for s in above.body if s is not statement]
    return (
        is_fixed(above.test, loop)
        and isinstance(statement, ast.Expr)
        and all(method_of(statement_call(s) or s) == (scaler, "unscale_") for s in others)
    )
