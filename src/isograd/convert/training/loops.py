"""The loops of a file that take gradients: steps that compile, and the others with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from isograd.convert.file import FileEdit
from isograd.convert.training.found import Found
from isograd.convert.training.kept_parameters import loose_parameters
from isograd.convert.training.model import EagerError, StepPlan
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.phases import SWITCH
from isograd.convert.training.recognise import backward_calls, plan_of
from isograd.convert.training.refusals import VARIABLE, changes_what_learns


def look_at_loops(
    found: Found,
    edit: FileEdit,
    by_hand: frozenset[int],
    others: OtherFiles,
    left: Mapping[ast.AST, EagerError],
) -> None:
    """Note the compiled steps of a file and what takes gradients beside them.

    by_hand: lines that read gradients for a step of their own.  left: calls that stay eager.
    """
    for node, reason in _learning(edit, by_hand):
        found.learning.append((edit, EagerError(node, reason)))
    plans = found.plans[edit.file] = []
    for call in backward_calls(edit):
        plan = left[call] if call in left else _plan_of(call, edit, others)
        if isinstance(plan, EagerError):
            found.failed.append((edit, call, plan))
        else:
            plans.append(plan)
            found.taking[id(plan)] = call
    for call in _switches(edit, plans):
        found.say(edit.file, call, "torch.set_grad_enabled needs recorded gradients")


def _plan_of(call: ast.Call, edit: FileEdit, others: OtherFiles) -> StepPlan | EagerError:
    try:
        return plan_of(call, edit, others)
    except EagerError as error:
        return error


def _learning(edit: FileEdit, by_hand: frozenset[int]) -> Iterator[tuple[ast.AST, str]]:
    """What learns beside networks: a loss of such a tensor looks as if nothing in it learned."""
    for loose in loose_parameters(edit):
        yield loose, "a parameter is made outside of networks"
    for call in edit.tree.of(ast.Call):
        if edit.api_of_call(call) == VARIABLE and len(call.args) > 1:
            yield call, "a tensor learns that is no network's parameter"
        for said in call.keywords:
            if said.lineno not in by_hand and (reason := changes_what_learns(said)):
                yield said.value, reason


def _switches(edit: FileEdit, plans: list[StepPlan]) -> list[ast.Call]:
    """The calls of `set_grad_enabled` elsewhere than around a step and its forward."""
    phases = [plan.phase for plan in plans if plan.phase is not None]
    own = {one.context.items[0].context_expr for one in phases if one.context is not None}
    calls = edit.tree.of(ast.Call)
    return [call for call in calls if edit.api_of_call(call) in SWITCH and call not in own]


def look_at_zeroing(found: Found) -> None:
    """A loop that zeroes behind its step begins with what another one has left."""
    plans = [(name, plan) for name, several in found.plans.items() for plan in several]
    late = [(name, plan) for name, plan in plans if plan.zeroes_late]
    if late and len(late) < len(plans):
        name, plan = late[0]
        found.say(name, plan.loop, "its first round may begin with gradients of another loop")
