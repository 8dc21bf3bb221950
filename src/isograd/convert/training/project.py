"""Decides for a whole project whether its training loops call compiled steps.

Gradients are recorded for all of a program or for nothing of it: one loop that has to stay as it
is keeps the others so, too.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from isograd.convert.analysis.parameter_containers import PARAMETER_CONTAINERS
from isograd.convert.facts import Facts
from isograd.convert.file import FileEdit
from isograd.convert.model import Finding, Level
from isograd.convert.text import wide
from isograd.convert.training.asked_once import Asked, AskedOnce
from isograd.convert.training.descent import descent_of
from isograd.convert.training.draws import Draws, drawing_apis
from isograd.convert.training.given import graphs_given
from isograd.convert.training.index import Index
from isograd.convert.training.joints import Joint
from isograd.convert.training.kept_parameters import loose_parameters, unseen_parameters
from isograd.convert.training.late_changes import changes_anywhere, late_changes
from isograd.convert.training.model import EagerError, StepPlan
from isograd.convert.training.names import OPTIMIZERS
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.phases import SWITCH
from isograd.convert.training.recognise import backward_calls, plan_of
from isograd.convert.training.record_files import KnownRecords, with_records
from isograd.convert.training.records import Imports, RecordError
from isograd.convert.training.refusals import (
    VARIABLE,
    changes_what_learns,
    kept_as_functions,
    refusals,
    variables_may_learn,
)
from isograd.convert.training.rewrite import Rewritten, joints_in, rewritten
from isograd.convert.training.verdicts import in_compiled_code, refused_by_graph
from isograd.convert.training.written_state import written_state
from isograd.knowledge.entry import Entry
from isograd.static_graph.find import compiled_functions
from isograd.static_graph.scope import FileScope

#: What needs recorded gradients, or does not happen in a compiled step.
_RECORDED = (
    "torch.autograd", "torch.func", "torch.enable_grad", "torch.set_grad_enabled",
    "torch.is_grad_enabled", "torch.Tensor.grad", "torch.Tensor.retain_grad",
    "torch.Tensor.register_hook", "torch.Tensor.register_post_accumulate_grad_hook",
    "torch.nn.Module.register_", "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations",
    "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.stateless",
    "torch.utils.checkpoint", "torch.optim.Optimizer.add_param_group",
    "torch.optim.lr_scheduler.LRScheduler.", "torch.nn.utils.get_total_norm",
)  # fmt: skip
_HARMLESS = (
    "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad", "torch.autograd.set_detect",
    "torch.nn.Module.register_buffer", "torch.nn.Module.register_parameter",
    "torch.nn.Module.register_module", "torch.autograd.anomaly", "torch.autograd.profiler",
    "torch.optim.lr_scheduler.LRScheduler.step", "torch.optim.lr_scheduler.LRScheduler.get_last_lr",
    "torch.optim.lr_scheduler.LRScheduler.state_dict",
    "torch.optim.lr_scheduler.LRScheduler.load_state_dict",
)  # fmt: skip
#: Written as cells with `bprop`, each class where it can be.
_OF_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.")
_MEMBERS = ("torch.optim.Optimizer.", "torch.optim.lr_scheduler", "torch.optim.swa_utils")
_GRADIENT = "torch.Tensor.grad"
_PARALLEL = "torch.nn.parallel.DistributedDataParallel"
_CODE = "eager-training"
_ADVICE = "It runs eagerly, as written; write one step as a function to have it compiled."


@dataclass
class Decision:
    """The files whose loops are written anew, by name; or why all loops stay as they are.

    evaluates: whether networks may be compiled where they are evaluated, too.
    """

    files: dict[str, Rewritten] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    evaluates: bool = False

    @property
    def compiles(self) -> bool:
        """Whether the project's steps are compiled."""
        return bool(self.files)


@dataclass
class _Found:
    plans: dict[str, list[StepPlan]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def say(self, file: str, node: ast.AST | None, reason: str) -> None:
        """Remember why loops stay as they are."""
        line, column = (0, 0) if node is None else (node.lineno, node.col_offset + 1)  # type: ignore[attr-defined]
        message = f"this training stays eager: {reason}"
        self.findings.append(Finding(file, line, column, _CODE, message, _ADVICE, Level.LOOK))


def may_record(facts: Iterable[Facts], decision: Decision) -> bool:
    """Whether anything of a project may ask for recorded gradients."""
    if decision.compiles:
        return False
    return any(
        takes_gradients(own)
        or any(_is_recorded(api) for api in (*own.apis, *(m.api for m in own.members.values())))
        for own in facts
    )


def _is_recorded(api: str) -> bool:
    return api.startswith(_RECORDED) and not api.startswith((*_HARMLESS, *_OF_FUNCTIONS))


def takes_gradients(facts: Facts) -> bool:
    """Whether a file calls a method `backward` of anything but self."""
    return "backward" in facts.called


def in_notebooks(files: Iterable[str]) -> Decision:
    """All loops stay as they are, because notebooks among the files take gradients."""
    found = _Found()
    for file in files:
        found.say(file, None, "a notebook's cells are not written as one step")
    return Decision(findings=tuple(found.findings))


def decide(
    edits: list[FileEdit],
    facts: Iterable[tuple[str, Facts]],
    trees: Iterable[tuple[str, ast.Module]],
    settings: Collection[str],
    entries: Iterable[Entry],
    reading: Callable[[str], FileEdit | None],
    imports: Imports,
) -> Decision:
    """Whether all training loops of a project can call compiled steps.

    edits: the files that take gradients.  facts, trees: of all files, by name.  settings: as
    `Knowledge.layer_arguments`.  entries: what is known of torch.  reading: a file by its name.
    """
    found, trees, facts, entries = _Found(), list(trees), list(facts), list(entries)
    modules = dict(trees)
    apis: set[str] = set()
    by_hand = {edit.file: _descended(edit) for edit in edits}
    by_name = {edit.file: edit for edit in edits}
    known = functools.cache(lambda name: by_name.get(name) or reading(name))
    for name, own in facts:
        members = {member.api for member in own.members.values()}
        apis |= own.apis | members
        for api in sorted(own.apis | members):
            if api == VARIABLE and (name in by_hand or not variables_may_learn(modules.get(name))):
                continue
            if (api == _GRADIENT and by_hand.get(name)) or (api in SWITCH and name in by_hand):
                continue  # each place is looked at below
            if _is_recorded(api):
                found.say(name, _named(api, modules.get(name)), f"{api} needs recorded gradients")
    _look_at_optimizers(found, edits, apis, needs_one=not any(by_hand.values()))
    others = OtherFiles(modules, imports, known)
    for edit in edits:
        _look_at_loops(found, edit, by_hand[edit.file], others)
    _look_at_zeroing(found)
    joints: dict[str, list[Joint]] = {}
    if not found.findings:
        _look_at_trees(found, trees, by_hand, KnownRecords(modules, imports), known)
        for place in written_state(trees, {name for _, own in facts for _, name in own.buffers}):
            found.say(*place)
        _look_at_changes(found, trees, settings)
        _look_at_inputs(found, trees, edits, known)
        if not apis.isdisjoint(PARAMETER_CONTAINERS):
            _look_at_parameters(found, trees, known)
        _look_at_apis(found, edits, trees, dict(facts), refused_by_graph(entries))
        joints = _joints(found, by_name, trees, dict(facts), entries)
    if found.findings:
        return Decision(findings=tuple(found.findings[:1]))
    averages = any(api.startswith(_PARALLEL) for api in apis)
    files = {
        name: rewritten(by_name[name], own, joints.get(name, []), averages)
        for name, own in found.plans.items()
    }
    try:
        files = with_records(files, modules, imports, lambda name: _text(known(name)))
        return Decision(files, evaluates=_may_evaluate(found, trees, settings))
    except RecordError as error:
        found.say(error.file, error.node, str(error))
        return Decision(findings=tuple(found.findings))


def _may_evaluate(
    found: _Found, trees: list[tuple[str, ast.Module]], settings: Collection[str]
) -> bool:
    """Whether nothing but the training loops changes what a compiled network has read.

    What networks report beside their values is a result of the steps alone.
    """
    steps = [plan for several in found.plans.values() for plan in several]
    has_reports = any(plan.names.reported for plan in steps)
    return not has_reports and not changes_anywhere(trees, steps, settings)


def _text(edit: FileEdit | None) -> str:
    return "" if edit is None else wide(edit.text.original)


def _look_at_trees(
    found: _Found,
    trees: list[tuple[str, ast.Module]],
    by_hand: dict[str, frozenset[int]],
    records: KnownRecords,
    reading: Callable[[str], FileEdit | None],
) -> None:
    for name, tree in trees:
        for own_class in kept_as_functions(tree):
            found.say(name, own_class, f"{own_class.name} keeps more than inputs and outputs")
        is_record = functools.partial(records.makes_one, name)
        read, lines = functools.partial(reading, name), by_hand.get(name, frozenset())
        for node, reason in refusals(tree, lines, is_record, read):
            found.say(name, node, reason)


def _look_at_changes(
    found: _Found, trees: list[tuple[str, ast.Module]], settings: Collection[str]
) -> None:
    steps = [plan for several in found.plans.values() for plan in several]
    for name, changed, reason in late_changes(trees, steps, settings):
        found.say(name, changed, reason)


def _look_at_inputs(
    found: _Found,
    trees: list[tuple[str, ast.Module]],
    edits: list[FileEdit],
    reading: Callable[[str], FileEdit | None],
) -> None:
    plans = [(edit, plan) for edit in edits for plan in found.plans.get(edit.file, ())]
    index = Index.of(trees)
    for name, node, reason in graphs_given(index, plans, reading):
        found.say(name, node, reason)
    asked = AskedOnce(index, reading)
    first: list[tuple[str, Asked | None]] = []
    for edit, plan in plans:
        one = asked.first([*plan.forward, plan.loss], plan.names.outside)
        first.append((edit.file, one or asked.first(plan.again.statements)))
    for name, tree in trees:
        networks = [compiled.node for compiled in compiled_functions(FileScope(tree))]
        first.append((name, asked.first(networks)))
    for name, one in first:
        if one is not None:
            found.say(name, one.node, f"{ast.unparse(one.node)} is asked once: {one.reason}")


def _look_at_parameters(
    found: _Found,
    trees: list[tuple[str, ast.Module]],
    reading: Callable[[str], FileEdit | None],
) -> None:
    """Parameters that a static graph would take for constants."""
    read = [reading(name) for name, _ in trees]
    for name, node, reason in unseen_parameters([one for one in read if one is not None]):
        found.say(name, node, reason)


def _look_at_apis(
    found: _Found,
    edits: list[FileEdit],
    trees: list[tuple[str, ast.Module]],
    facts: Mapping[str, Facts],
    refused: Mapping[str, str],
) -> None:
    owner_of = {edit.file: edit.tree.owner for edit in edits}
    elsewhere = [
        one for own in found.plans.values() for plan in own for one in plan.names.elsewhere
    ]
    for name, tree in trees:
        named = facts[name].apis | {member.api for member in facts[name].members.values()}
        if named.isdisjoint(refused):
            continue
        loops = [
            (getattr(owner_of[name](plan.loop), "name", ""), plan.computed)
            for plan in found.plans.get(name, ())
        ]
        loops += [("", tuple(function.body)) for file, function in elsewhere if file == name]
        for node, reason in in_compiled_code(tree, facts[name], loops, refused):
            found.say(name, node, reason)


def _joints(
    found: _Found,
    by_name: Mapping[str, FileEdit],
    trees: list[tuple[str, ast.Module]],
    facts: Mapping[str, Facts],
    entries: Iterable[Entry],
) -> dict[str, list[Joint]]:
    """The steps that compute once what two losses read; what others compute again may not draw."""
    plans = [(name, plan) for name, own in found.plans.items() for plan in own]
    again = [(name, plan) for name, plan in plans if plan.again.statements]
    if not again:
        return {}
    drawing = drawing_apis(entries)
    joints = {name: joints_in(by_name[name], own, drawing) for name, own in found.plans.items()}
    once = {id(joint.second) for several in joints.values() for joint in several}
    draws = Draws({name: (tree, facts[name]) for name, tree in trees}, drawing)
    for name, plan in again:
        statements = plan.again.statements
        drawn = None if id(plan) in once else draws.first(name, statements, plan.again.called)
        if drawn is not None:
            what = ast.unparse(statements[0])
            reason = f"{what} is shared by two losses and draws: line {drawn.lineno}"  # type: ignore[attr-defined]
            found.say(name, statements[0], reason)
    return joints


def _named(api: str, tree: ast.Module | None) -> ast.AST | None:
    """Where a file first says the last part of an API's name; None where it does not."""
    last = api.rpartition(".")[2]
    for node in ast.walk(tree) if tree is not None else ():
        names = (getattr(node, name, "") or "" for name in ("attr", "id", "name"))
        if last in (name.rpartition(".")[2] for name in names):  # `import a.b.last as other`
            return node
    return None


def _look_at_loops(
    found: _Found, edit: FileEdit, by_hand: frozenset[int], others: OtherFiles
) -> None:
    try:
        for loose in loose_parameters(edit):
            raise EagerError(loose, "a parameter is made outside of networks")
        for call in edit.tree.of(ast.Call):
            if edit.api_of_call(call) == VARIABLE and len(call.args) > 1:
                raise EagerError(call, "a tensor learns that is no network's parameter")
            # Said first: a loss of such a tensor looks as if nothing in it learned.
            for said in call.keywords:
                if said.lineno not in by_hand and (reason := changes_what_learns(said)):
                    raise EagerError(said.value, reason)
        plans = found.plans[edit.file] = [
            plan_of(call, edit, others) for call in backward_calls(edit)
        ]
        _look_at_switches(edit, plans)
    except EagerError as error:
        found.say(edit.file, error.node, str(error))


def _look_at_switches(edit: FileEdit, plans: list[StepPlan]) -> None:
    """Raise EagerError for a `set_grad_enabled` elsewhere than around a step and its forward."""
    phases = [plan.phase for plan in plans if plan.phase is not None]
    own = {one.context.items[0].context_expr for one in phases if one.context is not None}
    for call in edit.tree.of(ast.Call):
        if edit.api_of_call(call) in SWITCH and call not in own:
            raise EagerError(call, "torch.set_grad_enabled needs recorded gradients")


def _look_at_zeroing(found: _Found) -> None:
    """A loop that zeroes behind its step begins with what another one has left."""
    plans = [(name, plan) for name, several in found.plans.items() for plan in several]
    late = [(name, plan) for name, plan in plans if plan.zeroes_late]
    if late and len(late) < len(plans):
        name, plan = late[0]
        found.say(name, plan.loop, "its first round may begin with gradients of another loop")


def _look_at_optimizers(
    found: _Found, edits: list[FileEdit], apis: set[str], *, needs_one: bool
) -> None:
    named = {api for api in apis if api.startswith("torch.optim.") and not api.startswith(_MEMBERS)}
    others = sorted(api for api in named if api not in OPTIMIZERS)
    if others:
        places = ((one.file, _named(others[0], one.tree.module)) for one in edits)
        first = next((found for found in places if found[1] is not None), (edits[0].file, None))
        found.say(*first, f"{others[0]} has no compiled rule here")
    elif not named and needs_one:
        found.say(edits[0].file, None, "its optimizer is none of torch's")


def _descended(edit: FileEdit) -> frozenset[int]:
    """The lines on which a file descends gradients by hand."""
    return frozenset(
        line
        for node in ast.walk(edit.tree.module)
        if isinstance(node, (ast.For, ast.With)) and descent_of(node, edit) is not None
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )
