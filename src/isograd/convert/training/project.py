"""Decides for a whole project whether its training loops call compiled steps.

A loop that has to stay as it is runs beside compiled steps where it stands apart from them
(`regions`); else it keeps all others so, too.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from isograd.convert.analysis.parameter_containers import PARAMETER_CONTAINERS
from isograd.convert.facts import Facts
from isograd.convert.file import FileEdit
from isograd.convert.passes.unrecorded_results import keeps_gradients
from isograd.convert.text import wide
from isograd.convert.training.asked_once import Asked, AskedOnce
from isograd.convert.training.decision import Decision
from isograd.convert.training.descent import descent_of
from isograd.convert.training.draws import Draws, drawing_apis
from isograd.convert.training.found import Found
from isograd.convert.training.given import graphs_given
from isograd.convert.training.index import Index
from isograd.convert.training.joints import Joint
from isograd.convert.training.kept_parameters import unseen_parameters
from isograd.convert.training.late_changes import changes_anywhere, late_changes
from isograd.convert.training.loops import look_at_loops, look_at_zeroing
from isograd.convert.training.model import EagerError
from isograd.convert.training.names import OPTIMIZERS
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.phases import SWITCH
from isograd.convert.training.record_files import KnownRecords, with_records
from isograd.convert.training.recorded import is_recorded, named_in
from isograd.convert.training.records import Imports, RecordError
from isograd.convert.training.refusals import (
    VARIABLE,
    kept_as_functions,
    refusals,
    variables_may_learn,
)
from isograd.convert.training.regions import (
    LOCAL,
    computed_functions,
    problems,
    regions_of,
    steps_around,
)
from isograd.convert.training.rewrite import joints_in, rewritten
from isograd.convert.training.verdicts import in_compiled_code, refused_by_graph
from isograd.convert.training.written_state import written_state
from isograd.knowledge.entry import Entry
from isograd.static_graph.find import compiled_functions
from isograd.static_graph.scope import FileScope

_MEMBERS = ("torch.optim.Optimizer.", "torch.optim.lr_scheduler", "torch.optim.swa_utils")
_GRADIENT = "torch.Tensor.grad"
_PARALLEL = "torch.nn.parallel.DistributedDataParallel"


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
    project = _Project(edits, list(facts), list(trees), settings, list(entries), reading, imports)
    found = first = project.found()
    left: dict[ast.AST, EagerError] = {}
    while found.findings and (blamed := found.blamed()):
        left |= blamed  # the others may compile beside it
        found = project.found(left)
    return project.decision(found if found.every_plan and not found.findings else first)


@dataclass
class _Project:
    """What is looked at: as the arguments of `decide`."""

    edits: list[FileEdit]
    facts: list[tuple[str, Facts]]
    trees: list[tuple[str, ast.Module]]
    settings: Collection[str]
    entries: list[Entry]
    reading: Callable[[str], FileEdit | None]
    imports: Imports

    def __post_init__(self) -> None:
        self.modules = dict(self.trees)
        self.by_hand = {edit.file: _descended(edit) for edit in self.edits}
        self.by_name = {edit.file: edit for edit in self.edits}
        self.known = functools.cache(lambda name: self.by_name.get(name) or self.reading(name))
        self.apis: set[str] = set()
        for _, own in self.facts:
            self.apis |= own.apis | {member.api for member in own.members.values()}
        self.recorded = list(_recorded(self.facts, self.by_hand, self.modules))
        self.others = OtherFiles(self.modules, self.imports, self.known)
        self.index = self.others.index

    def found(self, left: Mapping[ast.AST, EagerError] | None = None) -> Found:
        """The compiled steps, and what keeps all or some code eager.

        left: calls that take gradients and are to stay eager, with the reason.
        """
        found = Found()
        for edit in self.edits:
            look_at_loops(found, edit, self.by_hand[edit.file], self.others, left or {})
        _find_regions(found, self.edits, self.modules, self.index, self.recorded)
        for name, api in self.recorded:
            _look_at_places(found, name, api, self.modules.get(name))
        needs_one = not any(self.by_hand.values())
        _look_at_optimizers(found, self.edits, self.apis, needs_one=needs_one)
        for edit, error in found.learning:
            found.say_of(error.node, edit.file, error.node, str(error))
        for edit, place, error in found.failed:
            found.say_of(place, edit.file, error.node, str(error))
        look_at_zeroing(found)
        if not found.findings:
            self._look_closer(found)
        return found

    def _look_closer(self, found: Found) -> None:
        """What of the whole project does not fit the compiled steps."""
        trees, facts = self.trees, dict(self.facts)
        records = KnownRecords(self.modules, self.imports)
        _look_at_trees(found, trees, self.by_hand, records, self.known)
        for said in written_state(
            trees, {name for own in facts.values() for _, name in own.buffers}
        ):
            found.say(*said)
        _look_at_changes(found, trees, self.settings)
        _look_at_inputs(found, trees, self.edits, self.known, self.index)
        if not self.apis.isdisjoint(PARAMETER_CONTAINERS):
            _look_at_parameters(found, trees, self.known)
        _look_at_apis(found, self.edits, trees, facts, refused_by_graph(self.entries))
        found.joints = _joints(found, self.by_name, trees, facts, self.entries)
        found.computed = computed_functions(self.index, found.every_plan)
        for function in found.computed:
            name = self.index.file(function)
            if keeps_gradients(function, self.known(name)):
                found.say(name, function, f"{function.name} records no gradients in a graph")
        for node, reason in problems(found.regions, found.every_plan, self.apis):
            found.say(self.index.file(node), node, reason)

    def decision(self, found: Found) -> Decision:
        """The project's files with its steps; or why there are none."""
        if found.findings or not found.every_plan:
            return Decision(findings=(*found.findings, *found.local.values())[:1])
        averages = any(api.startswith(_PARALLEL) for api in self.apis)
        files = {
            name: rewritten(self.by_name[name], own, found.joints.get(name, []), averages)
            for name, own in found.plans.items()
            if own
        }
        try:
            files = with_records(
                files, self.modules, self.imports, lambda name: _text(self.known(name))
            )
        except RecordError as error:
            found.say(error.file, error.node, str(error))
            return Decision(findings=tuple(found.findings))
        records = bool(found.regions.nodes)
        evaluates = not records and _may_evaluate(found, self.trees, self.settings)
        findings = tuple(found.local.values())
        return Decision(files, findings, evaluates, records, _computed(found, self.index))


def _computed(found: Found, index: Index) -> frozenset[str]:
    """The names of functions that steps may run; an object that is called may be any."""
    called = index.functions.get("__call__", [])
    several = {*found.computed, *called, *index.reached(called)}
    return frozenset(one.name for one in several)


def _recorded(
    facts: Iterable[tuple[str, Facts]],
    by_hand: Mapping[str, Collection[int]],
    modules: Mapping[str, ast.Module],
) -> Iterator[tuple[str, str]]:
    """The files and the APIs that need recorded gradients, but where each place is looked at."""
    for name, own in facts:
        for api in sorted(own.apis | {member.api for member in own.members.values()}):
            if api == VARIABLE and (name in by_hand or not variables_may_learn(modules.get(name))):
                continue
            if (api == _GRADIENT and by_hand.get(name)) or (api in SWITCH and name in by_hand):
                continue
            if is_recorded(api):
                yield name, api


def _find_regions(
    found: Found,
    edits: list[FileEdit],
    modules: Mapping[str, ast.Module],
    index: Index,
    recorded: list[tuple[str, str]],
) -> None:
    """What needs recorded gradients and stands apart from all compiled steps."""
    places = [place for _, place, _ in found.failed]
    for name, api in recorded:
        places += named_in(api, modules.get(name)) if api.startswith(LOCAL) else []
    if not places or not found.every_plan:
        return
    for edit in edits:
        for plan in steps_around(places, found.plans[edit.file], index):
            found.plans[edit.file].remove(plan)
            said = EagerError(plan.call, "its rounds take other gradients, which stay eager")
            found.failed.append((edit, plan.call, said))
            places.append(plan.call)
    found.regions = regions_of(index, found.every_plan, places)


def _look_at_places(found: Found, name: str, api: str, tree: ast.Module | None) -> None:
    """Say of an API where it is used outside of regions, or that a region uses it."""
    places = named_in(api, tree)
    outside = [place for place in places if found.regions.around(place) is None]
    reason = f"{api} needs recorded gradients"
    if places and not outside and api.startswith(LOCAL):
        found.say_of(places[0], name, places[0], reason)
    else:
        found.say(name, next(iter((*outside, *places)), None), reason)


def _may_evaluate(
    found: Found, trees: list[tuple[str, ast.Module]], settings: Collection[str]
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
    found: Found,
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
            found.say_of(node, name, node, reason)


def _look_at_changes(
    found: Found, trees: list[tuple[str, ast.Module]], settings: Collection[str]
) -> None:
    steps = [plan for several in found.plans.values() for plan in several]
    for name, changed, reason in late_changes(trees, steps, settings):
        found.say(name, changed, reason)


def _look_at_inputs(
    found: Found,
    trees: list[tuple[str, ast.Module]],
    edits: list[FileEdit],
    reading: Callable[[str], FileEdit | None],
    index: Index,
) -> None:
    plans = [(edit, plan) for edit in edits for plan in found.plans.get(edit.file, ())]
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
    found: Found,
    trees: list[tuple[str, ast.Module]],
    reading: Callable[[str], FileEdit | None],
) -> None:
    """Parameters that a static graph would take for constants."""
    read = [reading(name) for name, _ in trees]
    for name, node, reason in unseen_parameters([one for one in read if one is not None]):
        found.say(name, node, reason)


def _look_at_apis(
    found: Found,
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
    found: Found,
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


def _look_at_optimizers(
    found: Found, edits: list[FileEdit], apis: set[str], *, needs_one: bool
) -> None:
    named = {api for api in apis if api.startswith("torch.optim.") and not api.startswith(_MEMBERS)}
    others = sorted(api for api in named if api not in OPTIMIZERS)
    if others:
        places = [(one.file, at) for one in edits for at in named_in(others[0], one.tree.module)]
        outside = [(file, at) for file, at in places if found.regions.around(at) is None]
        file, node = next(iter((*outside, *places)), (edits[0].file, None))
        found.say_of(node, file, node, f"{others[0]} has no compiled rule here")
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
