"""Finds the training loops of a file, and what each is made of; or says why one stays eager."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.training.again import keeps_graph, look_at_changes
from isograd.convert.training.attributes import stored_as_names
from isograd.convert.training.branches import branches_around, look_at_rest
from isograd.convert.training.clipping import clip_of, is_clipping, name_of_bound
from isograd.convert.training.contexts import is_autocast
from isograd.convert.training.descent import descent_of, name_descent
from isograd.convert.training.forward import ForwardPart
from isograd.convert.training.model import (
    Branches,
    Clip,
    Descent,
    EagerError,
    Form,
    Phase,
    Repeated,
    Share,
    StepPlan,
)
from isograd.convert.training.modes import a_call_may_change
from isograd.convert.training.naming import name_what_is_read
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.paths import (
    block_of,
    calls_in,
    is_number,
    method_of,
    name_for,
    path_of,
    scope_of,
    statement_call,
)
from isograd.convert.training.phases import block_around, phase_around
from isograd.convert.training.reported import reported_outputs
from isograd.convert.training.sometimes_called import look_at_branches
from isograd.convert.training.turns import (
    Turn,
    look_at_loop,
    look_at_shares,
    look_at_what_is_made,
    optimizers_in,
    turn_of,
)
from isograd.convert.training.versions import later_versions
from isograd.convert.training.zeroing import (
    held_zeroing,
    steps_of_one,
    zeroed_paths,
    zeroing_statements,
)


def backward_calls(file: FileEdit) -> list[ast.Call]:
    """The calls that take gradients, in the order of the text; of two alike branches one's."""
    found = [
        call
        for call in file.tree.of(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    ]
    both = {call: branches_around(call, file) for call in found}
    found = [call for call, one in both.items() if one is None or not one.are_plain(call)]
    return sorted(found, key=lambda call: call.lineno)


def plan_of(call: ast.Call, file: FileEdit, others: OtherFiles) -> StepPlan:
    """What the loop around a `backward()` is made of; raises EagerError where it is of no kind."""
    return _Reader(call, file, others).plan()


@dataclass
class _Reader:
    """One loop while it is read."""

    call: ast.Call
    file: FileEdit
    others: OtherFiles
    loop: Repeated = field(init=False)
    turn: Turn = field(init=False)
    units: list[ast.stmt] = field(default_factory=list)
    #: What stands before the turn.
    earlier: list[ast.stmt] = field(default_factory=list)
    removed: list[ast.stmt] = field(default_factory=list)
    scaling: list[ast.stmt] = field(default_factory=list)
    scaler: str = ""
    #: Statements behind the loop that take the gradients of all its rounds.
    behind: list[ast.stmt] = field(default_factory=list)
    zeroed: tuple[str, ...] = ()
    #: Networks that are zeroed in place of what the optimizer holds.
    zeroed_for: tuple[ast.expr, ...] = ()
    branches: Branches | None = None
    descent: Descent | None = None
    zeroes_late: bool = False
    #: Optimizers that step with the first one.
    beside: tuple[str, ...] = ()
    phase: Phase | None = None
    #: The condition under which the whole step stands.
    block: ast.If | None = None

    def plan(self) -> StepPlan:
        statement = self.file.tree.statement(self.call)
        self._find_loop(statement)
        with stored_as_names(self.loop, self._scope, statement, self.file) as attributes:
            return self._planned(statement, attributes)

    def _planned(self, statement: ast.stmt, attributes: frozenset[str]) -> StepPlan:
        loss = self._unscaled(statement)
        optimizer = self._optimizer()
        update, form = self._update(optimizer, statement)
        if self.phase is not None and update not in self.phase.statement.body:
            raise EagerError(update, "step() is not under the condition of backward()")
        clip = self._clip(update, statement, form)
        self._zeroed(optimizer, form)
        gone = {*self.removed, *self.scaling}
        part = ForwardPart(
            self.file, self.loop, self.turn, self.units, gone, self._scope, attributes, self.earlier
        )
        forward = part.find(statement, loss, self.others)
        others = part.others(statement) if self.phase is None else []
        with later_versions(forward, others, loss, self._scope, self.file) as (now, versions):
            part.statements = now
            outputs, carried = part.flows(loss)
            if carried and keeps_graph(self.call):
                raise EagerError(self.call, "backward() may go on into earlier rounds")
            computed = [*part.again, *now]
            names = name_what_is_read(self.file, self.loop, computed, loss, carried, self.others)
            part.can_wait = not versions and self.phase is None and self.branches is None
            at = forward[now.index(part.place(statement, loss, names))]
        look_at_branches(self.file, self.loop, computed, names)
        part.statements = forward
        outputs += [one.own for one in versions if one.is_kept]
        outputs += reported_outputs(names.reported, now, outputs)
        names.places += [(node, one.own) for one in versions for node in one.nodes]
        if form is Form.FUSED:
            kept = clip.result if clip is not None else ""
            changed = {*names.objects, optimizer, *self.beside, self.scaler, kept}
            part.look_between(at, update, changed)
            for setting in (clip.bound if clip else "", self.descent.rate if self.descent else ""):
                part.look_at_setting(setting, at, update)
        between = [s for s in (*self.earlier, *self.units) if s.lineno < at.lineno]
        between = [s for s in between if s not in forward]
        again = look_at_changes(self.file, part.again, between, names, self.turn)
        is_renewed = a_call_may_change(
            {*names.objects}, self.loop, {*part.again, *forward, *gone}, self.file
        )
        same = {*self.zeroed, *([clip.network] if clip is not None else [])}
        if self.descent is not None:
            name_descent(self.descent, names)
        names.objects |= {one: name_for(one) for one in sorted(same - {*names.objects})}
        if clip is not None and form is Form.FUSED and not is_number(clip.bound):
            names.inputs.setdefault(clip.bound, name_of_bound(clip, names))
        given = {*names.objects, optimizer, *self.beside, self.scaler}
        look_at_what_is_made(self.loop, given, now, self.file)
        look_at_rest(self.branches, self.phase, {*self.removed, *self.scaling})
        return StepPlan(
            self.loop, form, tuple(forward), at, loss, tuple(outputs), frozenset(carried),
            names, optimizer, self.scaler, clip, update, tuple(self.removed), tuple(self.scaling),
            tuple(sorted(same)), is_renewed, self.branches, self.descent,
            self.zeroes_late, self.beside, self.phase, tuple(versions), self.turn.share, again,
            part.waiting, self.zeroed_for,
        )  # fmt: skip

    # ---- the loop and the calls that make it a step

    def _find_loop(self, statement: ast.stmt) -> None:
        if statement_call(statement) is not self.call:
            raise EagerError(self.call, "the value of backward() is used")
        self.branches = branches_around(statement, self.file)
        self.block = block_around(statement, self.file)
        self.phase = phase_around(statement, self.file) if self.block is None else None
        top = self.block or (statement if self.branches is None else self.branches.statement)
        top = top if self.phase is None else self.phase.outermost
        parent = self.file.tree.parents.get(top)
        if isinstance(parent, ast.With) and self._is_autocast(parent):
            parent = self.file.tree.parents.get(parent)
        if not isinstance(parent, Repeated):
            raise EagerError(self.call, "backward() is no statement of a loop or function itself")
        look_at_loop(parent, self.file)
        if self.call.args or (self.call.keywords and not keeps_graph(self.call)):
            raise EagerError(self.call, "backward() is given arguments")
        self.loop = parent
        for part in parent.body:
            flat = isinstance(part, ast.With) and self._is_autocast(part)
            self.units += part.body if flat and isinstance(part, ast.With) else [part]
        if self.phase is not None:
            at = self.units.index(self.phase.outermost)
            self.units[at : at + 1] = self.phase.inside
        if self.branches is not None:
            at = self.units.index(self.branches.statement)
            self.units[at : at + 1] = self.branches.scaled
        self.turn = turn_of(self.call, self._own(calls_in([parent])), parent, self._optimizers())
        if self.turn.share is not Share.WHOLE and (self.phase or self.branches):
            raise EagerError(self.call, "one of several losses of a step is under a condition")
        self.earlier = [unit for unit in self.units if unit.lineno <= self.turn.first]
        if self.block is not None:
            self.earlier = [unit for unit in self.units if unit.lineno < self.block.lineno]
            self.units = self.block.body
        self.units = [unit for unit in self.units if self.turn.holds(unit)]
        self.removed.append(statement)

    @property
    def _scope(self) -> ast.AST:
        return scope_of(self.loop, self.file)

    def _optimizers(self) -> set[str]:
        return optimizers_in(calls_in([self._scope]), self.file)

    def _calls(self) -> list[ast.Call]:
        """The calls of the loop that belong to this step."""
        return list(filter(self.turn.is_of_step, self._own(calls_in([self.loop, *self.behind]))))

    def _own(self, calls: Iterable[ast.Call]) -> list[ast.Call]:
        """Without those of the branch that does the same without a scaler."""
        return [c for c in calls if self.branches is None or not self.branches.are_plain(c)]

    def _is_top(self, statement: ast.stmt) -> bool:
        """Whether a statement stands in the loop itself, or in its branch with the scaler."""
        parent = self.file.tree.parents[statement]
        is_branch = self.branches is not None and parent is self.branches.statement
        is_in_phase = self.phase is not None and parent is self.phase.statement
        return parent is (self.block or self.loop) or is_branch or is_in_phase

    def _is_autocast(self, node: ast.With) -> bool:
        return all(is_autocast(item.context_expr, self.file) for item in node.items)

    def _unscaled(self, statement: ast.stmt) -> ast.expr:
        assert isinstance(self.call.func, ast.Attribute)
        loss = self.call.func.value
        path, method = method_of(loss)
        if method == "scale" and isinstance(loss, ast.Call) and len(loss.args) == 1:
            self.scaler = path
            return loss.args[0]
        return loss

    def _reach_behind(self) -> bool:
        """Take what stands behind the loop into the step: gradients of all its rounds are one's."""
        block = block_of(self.loop, self.file)
        last = block[-1].end_lineno
        is_apart = self.block is not None or not self.turn.is_alone
        if isinstance(self.loop, ast.FunctionDef) or is_apart or self.behind:
            return False
        self.behind = block[block.index(self.loop) + 1 :]
        self.turn = Turn(self.turn.first, last or 0)
        return bool(self.behind)

    def _optimizer(self) -> str:
        if self.scaler:
            if not self.turn.is_alone:
                raise EagerError(self.call, "one of several losses is scaled")
            stepped = [
                path_of(c.args[0])
                for c in self._calls()
                if method_of(c) == (self.scaler, "step") and len(c.args) == 1
            ]
        else:
            zeroed = zeroed_paths(self._scope) if self.turn.is_alone else self._optimizers()
            stepped = [
                path
                for c in self._calls()
                for path, method in [method_of(c)]
                if method == "step" and not c.args and path in zeroed
            ]
            if not stepped and zeroed and self.turn.is_alone:
                stepped = steps_of_one(self._calls(), self.file)
        if not stepped and self._descends():
            return ""
        if not stepped and self._reach_behind():
            return self._optimizer()
        if len(stepped) > 1 and self._step_together(stepped):
            self.beside = tuple(stepped[1:])
        elif len(stepped) != 1 or not stepped[0]:
            said = "no optimizer whose zero_grad() and step() are called" if not stepped else ""
            raise EagerError(self.loop, said or "the loop has several optimizers' steps")
        return stepped[0]

    def _step_together(self, stepped: list[str]) -> bool:
        """Whether several optimizers step once each for the one loss of the loop."""
        statements = [
            self.file.tree.statement(call)
            for call in self._calls()
            if method_of(call) in {(path, "step") for path in stepped}
        ]
        return (
            not self.scaler and self.turn.is_alone and not self.behind and self.branches is None
            and len({*stepped}) == len(stepped) == len(statements)
            and all(self._is_top(s) and isinstance(s, ast.Expr) for s in statements)
        )  # fmt: skip

    def _descends(self) -> bool:
        """Whether the loop changes the parameters by hand."""
        found = [one for unit in self.units for one in [descent_of(unit, self.file)] if one]
        self.descent = found[0] if len(found) == 1 and self.turn.is_alone else None
        return self.descent is not None

    def _update(self, optimizer: str, backward: ast.stmt) -> tuple[ast.stmt, Form]:
        if self.turn.share in (Share.FIRST, Share.NEXT):
            return backward, Form.FUSED
        if self.descent is not None:
            if self.descent.statement.lineno < backward.lineno:
                raise EagerError(self.descent.statement, "parameters change before backward()")
            self.removed.append(self.descent.statement)
            return self.descent.statement, Form.FUSED
        wanted = (self.scaler, "step") if self.scaler else (optimizer, "step")
        if self.beside:
            return self._updates({optimizer, *self.beside}, backward), Form.FUSED
        call = next(c for c in self._calls() if method_of(c) == wanted)
        update = self.file.tree.statement(call)
        if statement_call(update) is not call:
            raise EagerError(call, "the value of step() is used, or it takes a closure")
        parent = self.file.tree.parents[update]
        is_top = self._is_top(update)
        is_inside = (
            self.block is None
            and isinstance(parent, ast.If)
            and self.file.tree.parents[parent] is self.loop
        )
        if not is_top and not is_inside and update not in self.behind:
            raise EagerError(update, "step() stands deeper than one condition in the loop")
        if update.lineno < backward.lineno:
            raise EagerError(update, "step() comes before backward()")
        if self.scaler:
            self._scaling(block_of(update, self.file), update)
        if is_top:
            self.removed.append(update)
        return update, Form.FUSED if is_top else Form.HELD

    def _updates(self, optimizers: set[str], backward: ast.stmt) -> ast.stmt:
        """The last of several optimizers' steps."""
        steps = {(path, "step") for path in optimizers}
        calls = [c for c in self._calls() if method_of(c) in steps]
        statements = sorted(map(self.file.tree.statement, calls), key=lambda s: s.lineno)
        if statements[0].lineno < backward.lineno:
            raise EagerError(statements[0], "step() comes before backward()")
        self.removed += statements
        return statements[-1]

    def _scaling(self, block: list[ast.stmt], update: ast.stmt) -> None:
        for statement in block:
            call = statement_call(statement)
            if call is not None and method_of(call) in (
                (self.scaler, "unscale_"),
                (self.scaler, "update"),
            ):
                if call.keywords or (call.args and method_of(call)[1] == "update"):
                    raise EagerError(call, "the scaler is given a scale")
                self.scaling.append(statement)
        if not any(method_of(statement_call(s)) == (self.scaler, "update") for s in self.scaling):  # type: ignore[arg-type]
            raise EagerError(update, "the scaler is not updated beside the step")

    def _clip(self, update: ast.stmt, backward: ast.stmt, form: Form) -> Clip | None:
        found = [call for call in self._calls() if is_clipping(call, self.file)]
        if not found or self.turn.share in (Share.FIRST, Share.NEXT):
            return None
        if self.beside:
            raise EagerError(found[0], "gradients of one of several optimizers are clipped")
        clip = clip_of(found, (backward, update), self.scaler, self.loop, form, self.file)
        if isinstance(clip.statement, ast.If):
            self.scaling = [s for s in self.scaling if s not in clip.statement.body]
        self.removed.append(clip.statement)
        return clip

    def _zeroed(self, optimizer: str, form: Form) -> None:
        """In the fused form every round begins without gradients; else the optimizer holds them."""
        if form is Form.HELD:
            self.zeroed_for = held_zeroing(self._scope, optimizer, self.file)
            self.zeroed = tuple({path_of(network) for network in self.zeroed_for})
            return
        body = (
            *self.loop.body,
            *(self.branches.scaled if self.branches else ()),
            *(self.phase.inside if self.phase else ()),
            *(self.block.body if self.block else ()),
        )
        found = [s for s, call in zeroing_statements(body) if self.turn.is_of_step(call)]
        if not found and not (self.descent is not None and self.descent.zeroes):
            raise EagerError(self.loop, "gradients are not zeroed in each round")
        zeroed = {method_of(statement_call(s) or s)[0] for s in found}
        if self.beside and zeroed != {optimizer, *self.beside}:
            raise EagerError(self.loop, "one of several optimizers is not zeroed in each round")
        others = [s for s in found if method_of(statement_call(s) or s)[0] != optimizer]
        if self.turn.share is not Share.WHOLE:
            look_at_shares(found, self.turn, self.loop)
        if self.descent is not None and zeroed - {self.descent.network}:
            raise EagerError(self.loop, "gradients are zeroed elsewhere than in the network")
        stepping = {path for path, m in map(method_of, calls_in([self._scope])) if m == "step"}
        is_networks = len(zeroed) == 1 and zeroed.isdisjoint(stepping)
        if others and not self.turn.is_alone and not is_networks:
            raise EagerError(others[0], "gradients of another step are zeroed between two losses")
        self.zeroes_late = all(s.lineno > self.call.lineno for s in found)
        self.removed += [s for s in found if self.turn.holds(s)]
        if not self.beside and optimizer not in zeroed_paths(self._scope):
            self.zeroed = tuple({method_of(statement_call(s) or s)[0] for s in others})
