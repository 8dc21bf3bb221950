"""The statements of a loop that compute its loss, and what goes in and comes out of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.origins import view_of
from isograd.convert.training.again import computed_again, names_with_graphs
from isograd.convert.training.changes import changed_by, changes_what_is_read, paths_read
from isograd.convert.training.freedom import Freedom, is_detached, tainted_in
from isograd.convert.training.handed import makes_distribution
from isograd.convert.training.model import EagerError, Names, Repeated
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.own_containers import (
    OwnContainers,
    conditions_of,
    filled_in,
    fills_alone,
    own_containers,
)
from isograd.convert.training.paths import (
    bound_by,
    method_of,
    names_read,
    path_of,
    read_before_bound,
    read_by,
)
from isograd.convert.training.turns import Turn
from isograd.convert.training.waiting_statements import waiting_statements

#: Values that leave the graph; Python's own side effects; what changes what learns.
_LEAVES = frozenset(
    "item numpy tolist backward cpu append print update write requires_grad_".split()
)
#: Functions whose result is a tensor of its own, unless it is a view.
_FUNCTIONS = "torch.nn.functional."
_MAKING = frozenset(f"torch.{name}" for name in "mean sum zeros zeros_like tensor".split())


@dataclass
class ForwardPart:
    """The forward part of one loop.

    units: the loop's statements, those in contexts and branches that fall away among them.
    gone: statements that the step replaces, of the optimizer and its like.  scope: what has the
    loop's names.  attributes: those that count as names, because the part writes to them.
    earlier: the statements of earlier turns.  again: those of them that are computed once more.
    """

    file: FileEdit
    loop: Repeated
    turn: Turn
    units: list[ast.stmt]
    gone: set[ast.stmt]
    scope: ast.AST
    attributes: frozenset[str]
    earlier: list[ast.stmt] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)
    again: list[ast.stmt] = field(default_factory=list)
    #: What the part makes and fills.
    containers: OwnContainers = field(default_factory=OwnContainers)
    #: What stands behind the call of the step, and stood between the part's statements.
    waiting: tuple[ast.stmt, ...] = ()
    can_wait: bool = True

    def find(self, backward: ast.stmt, loss: ast.expr, project: OtherFiles) -> list[ast.stmt]:
        """The statements on which the loss depends, and through which gradients may flow."""
        before = [s for s in self.units if s.lineno < backward.lineno]
        freedom = Freedom(self.file, others=project)
        tainted = tainted_in(before, freedom, self.earlier)
        of_earlier = tainted_in(self.earlier, freedom)
        needed, paths = read_by(loss), paths_read(loss)
        live = self._read_with_graphs(loss)
        learned = {name for s in before if tainted[s] for name in bound_by(s)}
        of_others = names_with_graphs(of_earlier) - learned
        self.containers = own_containers(before, self.file, self._is_fresh)
        made: dict[ast.stmt, str] = {one: name for name, one in self.containers.made.items()}
        filled = {  # whose elements depend on what is learned
            name
            for name, fills in self.containers.fills.items()
            if any(tainted[one] for one in fills)
        }
        forward: list[ast.stmt] = []
        for statement in reversed(before):
            is_needed = bound_by(statement) & needed or changed_by(statement, self.file) & paths
            own = made.get(statement, "")
            is_own = own in filled or not filled.isdisjoint(filled_in(statement, self.containers))
            if not is_needed or not (tainted[statement] or is_own):
                continue
            is_value = isinstance(statement, ast.Assign) and bound_by(statement).isdisjoint(live)
            read = read_by(statement)
            if is_value and not is_own and read & of_others and not read & learned:
                continue  # read by `detach()` alone: the value of another step's result goes in
            self._look_inside(statement)
            live |= self._read_with_graphs(statement)
            needed |= read_by(statement)
            paths |= paths_read(statement)
            forward.insert(0, statement)
        if not forward:
            raise EagerError(backward, "the loss is not computed in the loop")
        self._look_at_stars(forward)
        self.again = computed_again(self.file, of_earlier, before, forward, loss)
        for statement in self.again:
            self._look_inside(statement)
        self.statements = forward
        return forward

    def _read_with_graphs(self, node: ast.AST) -> set[str]:
        """The names that a node reads otherwise than by `detach()`."""
        return {name.id for name in names_read(node) if not is_detached(name, self.file)}

    def _is_fresh(self, value: ast.expr) -> bool:
        """Whether an expression makes a tensor of its own, or a number."""
        if not isinstance(value, ast.Call):
            return isinstance(value, (ast.Constant, ast.BinOp, ast.UnaryOp))
        is_in_place = any(part.arg in ("inplace", "out") for part in value.keywords)
        api = self.file.api_of_call(value)
        is_function = api.startswith(_FUNCTIONS) or api in _MAKING
        return is_function and not is_in_place and view_of(value, self.file.views) is None

    def _filled(self, statement: ast.stmt) -> set[str]:
        return filled_in(statement, self.containers)

    def _look_at_stars(self, forward: list[ast.stmt]) -> None:
        """Raise EagerError where a call unpacks what comes from outside: a constant in a graph."""
        known = set[str]()
        outside = read_before_bound(forward, known)
        for statement in forward:
            for node in ast.walk(statement):
                if not isinstance(node, ast.Starred) or isinstance(node.ctx, ast.Store):
                    continue
                name = getattr(node.value, "id", "")
                if name not in known or name in outside:
                    what = f"{ast.unparse(node)}, which the compiler refuses"
                    raise EagerError(node, f"the forward part holds {what}")

    def _look_at_fills(self, statement: ast.stmt) -> set[ast.AST]:
        """The nodes that fill the part's own containers; raises EagerError of a branch that may.

        A graph takes both branches, which would have to leave the same keys.
        """
        for branch in conditions_of(statement, self.containers):
            what = ast.unparse(branch.test)
            raise EagerError(branch, f"the forward part fills a container where {what}")
        nodes = {node for node in ast.walk(statement) if self.containers.may_fill(node)}
        alone = (one for one in ast.walk(statement) if isinstance(one, ast.stmt))
        return nodes | {one for one in alone if fills_alone(one, self.containers)}

    def _look_inside(self, statement: ast.stmt) -> None:
        fills = self._look_at_fills(statement)
        kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For)
        if not isinstance(statement, kinds) and statement not in fills:
            what = ast.unparse(statement).partition("\n")[0]
            raise EagerError(statement, f"the forward part holds more than assignments: {what}")
        for node in ast.walk(statement):
            if node in fills:
                continue
            if isinstance(node, (ast.Expr, ast.Break, ast.Continue, ast.Try, ast.With, ast.While)):
                what = ast.unparse(node).partition("\n")[0]
                raise EagerError(node, f"the forward part holds more than assignments: {what}")
            if isinstance(node, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield)):
                what = f"{ast.unparse(node)}, which the compiler refuses"
                raise EagerError(node, f"the forward part holds {what}")
            if isinstance(node, ast.keyword) and node.arg is None and not path_of(node.value):
                raise EagerError(statement, "the forward part calls with ** of a dictionary")
            if isinstance(node, ast.Call) and makes_distribution(self.file.api_of_call(node)):
                what = f"{ast.unparse(node)}, an object, which no static graph makes"
                raise EagerError(node, f"the forward part makes {what}")
            if isinstance(node, ast.Call) and method_of(node)[1] in _LEAVES:
                raise EagerError(node, f"the forward part calls {method_of(node)[1]}()")
            if isinstance(node, ast.Constant) and "\n" in str(node.value):
                raise EagerError(node, "the forward part holds a text of several lines")
            is_store = isinstance(getattr(node, "ctx", None), ast.Store)
            if is_store and isinstance(node, (ast.Attribute, ast.Subscript)):
                raise EagerError(node, "the forward part writes to an attribute or an element")

    def flows(self, loss: ast.expr) -> tuple[list[str], set[str]]:
        """Names that are read behind the forward part, and those that the next round reads."""
        forward = [*self.again, *self.statements]
        bound = set().union(*map(bound_by, self.statements))
        inside = {node for s in forward for node in ast.walk(s)} | set(ast.walk(loss))
        skipped = {node for s in self.gone for node in ast.walk(s)}
        outside = (n for n in names_read(self.scope) if n not in inside and n not in skipped)
        outside = (n for n in outside if not self._is_of_function(n))
        # A loop inside the part may bind nothing: what is read of its names counts, unless another
        # loop binds them for itself.
        read = {n.id for n in outside if n.id in bound and not self._is_of_loop(n)}
        read |= self.attributes & bound
        known = set[str]()
        carried = read_before_bound(forward, known) & bound
        carried |= (read | read_by(loss)) & bound - known
        return sorted((read | carried) & bound), carried

    def _is_of_function(self, node: ast.Name) -> bool:
        """Whether a name that is read within another function is one that this function binds."""
        function = self.file.tree.scope(node)
        if function is self.scope or not self.file.tree.is_own(node.id, node):
            return False
        kinds = (ast.Global, ast.Nonlocal)
        return not any(isinstance(n, kinds) and node.id in n.names for n in ast.walk(function))

    def _is_of_loop(self, node: ast.Name) -> bool:
        """Whether a name that is read in a loop's body is one that this loop binds each time."""
        around = {self.loop, *self.file.tree.above(self.loop)}
        below: ast.AST = node
        for part in self.file.tree.above(node):
            if part in around:
                break
            if isinstance(part, ast.For) and below in part.body:
                if node.id in bound_by(part.target):
                    return True
            below = part
        return False

    def others(self, backward: ast.stmt) -> list[ast.stmt]:
        """The statements between those of the forward part, which stay outside of the step."""
        first, own = self.statements[0].lineno, {(s.lineno, s.col_offset) for s in self.statements}
        between = [s for s in self.units if first < s.lineno < backward.lineno]
        return [s for s in between if (s.lineno, s.col_offset) not in own and s not in self.gone]

    def place(self, backward: ast.stmt, loss: ast.expr, names: Names) -> ast.stmt:
        """Where the step is called: with the last statement, or with the first."""
        forward, others = self.statements, self.others(backward)
        bound = set().union(*map(bound_by, forward))
        behind = [s for s in others if s.lineno < forward[-1].lineno]
        late = next((s for s in others if s not in behind and self._changes(s, loss)), None)
        if late is not None:
            raise EagerError(late, "what the loss reads changes behind the forward part")
        is_early = any(  # at the last statement an input would have its later value
            self._changes(s, part) for s in behind for part in forward if part.lineno < s.lineno
        )
        can_wait = self.can_wait and self.turn.is_alone and not is_early
        waiting = waiting_statements(behind, forward, bound, self.file) if can_wait else None
        if waiting is not None or not (is_early or any(read_by(s) & bound for s in behind)):
            self.waiting = tuple(waiting or ())
            self._look_at_ends(forward[-1], backward)
            return forward[-1]
        self._look_at_ends(forward[0], backward)
        for s in behind:
            behind_it = [part for part in forward if part.lineno > s.lineno]
            later = set().union(*map(bound_by, behind_it), *map(self._filled, behind_it))
            if changed := sorted(read_by(s) & later):
                # Behind the step it would read the last value.
                raise EagerError(s, f"{changed[0]} is read here and bound again behind it")
        roots = {name for path in names.inputs for name in read_by(ast.parse(path, mode="eval"))}
        kept = roots | bound | {*names.inputs}
        for s in behind:
            changes = bound_by(s) | changed_by(s, self.file)
            if changed := sorted(changes & roots) or sorted(changes & kept):
                what = "change what it reads or binds"
                raise EagerError(
                    s, f"other statements within the forward part {what}: {changed[0]}"
                )
        return forward[0]

    def _look_at_ends(self, call: ast.stmt, last: ast.stmt) -> None:
        """Raise EagerError where a round may end behind the call of the step, and before `last`."""
        for statement in self.units:
            for node in ast.walk(statement) if call.lineno < statement.lineno < last.lineno else ():
                if isinstance(node, (ast.Continue, ast.Break, ast.Return)):
                    raise EagerError(node, "a round may end between the loss and the step")

    def _changes(self, statement: ast.stmt, other: ast.AST) -> bool:
        return changes_what_is_read(statement, other, self.file)

    def look_between(self, call: ast.stmt, update: ast.stmt, paths: set[str]) -> None:
        """Statements between the call of the step and the update see what the step changes.

        call: the statement in whose place the step is called.
        """
        self._look_at_ends(self.statements[-1], update)
        for statement in self.units:
            is_between = call.lineno < statement.lineno < update.lineno
            if not is_between and statement not in self.waiting:
                continue
            if statement in self.gone or statement in self.statements:
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and path_of(node) in paths - {""}:
                    what = f"what the step changes is read between it and forward: {path_of(node)}"
                    raise EagerError(node, what)

    def look_at_setting(self, setting: str, call: ast.stmt, update: ast.stmt) -> None:
        """The step takes a bound or a rate where it is called, and needs that of the update.

        call: the statement in whose place the step is called.
        """
        if not setting:
            return
        read = {path_of(node) for node in ast.walk(ast.parse(setting, mode="eval"))} - {""}
        late = [s for s in self.units if call.lineno < s.lineno < update.lineno]
        for node in (
            n for s in (*self.statements, *late) if s not in self.gone for n in ast.walk(s)
        ):
            is_bound = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
            if is_bound and path_of(node) in read:
                raise EagerError(node, f"{setting} changes between the forward part and the step")
