"""A loop that trains in one phase and computes the same forward part in another.

with torch.set_grad_enabled(phase == "train"):
    output = model(x)
    loss = criterion(output, y)
    if phase == "train":
        loss.backward()
        optimizer.step()
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Phase
from isograd.convert.training.paths import bound_by, is_fixed, read_by

SWITCH = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")


def phase_around(backward: ast.stmt, file: FileEdit) -> Phase | None:
    """The condition around a `backward()` that is the same in all rounds of its loop."""
    above = file.tree.parents[backward]
    if not isinstance(above, ast.If) or above.orelse:
        return None
    around = file.tree.parents[above]
    context = around if isinstance(around, ast.With) else None
    if context is not None and not _is_switched_by(context, above.test, file):
        return None
    loop = file.tree.parents[context or above]
    if not isinstance(loop, (ast.For, ast.While)) or not is_fixed(above.test, loop):
        return None
    return Phase(above, context)


def block_around(backward: ast.stmt, file: FileEdit) -> ast.If | None:
    """The condition under which some rounds take the whole step: forward part, backward, step."""
    above = file.tree.parents[backward]
    if not isinstance(above, ast.If) or above.orelse:
        return None
    before = [s for s in above.body if s.lineno < backward.lineno]
    bound = set().union(*map(bound_by, before))
    return above if bound & read_by(backward) else None


def _is_switched_by(context: ast.With, test: ast.expr, file: FileEdit) -> bool:
    """Whether it is `with torch.set_grad_enabled(test):`."""
    call = context.items[0].context_expr
    return (
        len(context.items) == 1
        and isinstance(call, ast.Call)
        and file.api_of_call(call) in SWITCH
        and [ast.dump(given) for given in call.args] == [ast.dump(test)]
        and not call.keywords
    )
