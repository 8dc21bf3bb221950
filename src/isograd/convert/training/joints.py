"""Two steps of a round that are taken as one: the second loss goes back through what both read.

fake = generator(z)
criterion(discriminator(fake.detach()), zeros).backward()
optimizer_D.step()
label = torch.full_like(label, 1.0)
criterion(discriminator(fake), ones).backward()
optimizer_G.step()

One compiled step computes `fake` once, and takes the second step behind the first.  What stands
between the two is done behind both, or before them where the second one reads it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import OF_CONTAINERS, changed_by, paths_read
from isograd.convert.training.freedom import TENSORS, Freedom
from isograd.convert.training.model import Form, Share, StepPlan
from isograd.convert.training.paths import (
    bound_by,
    calls_in,
    is_number,
    method_of,
    names_read,
    path_of,
    read_by,
    root_of,
    scope_of,
    statement_call,
)
from isograd.convert.tree import counted_by, pairs_of

#: Methods that give all of a tensor other values, and the function that makes a tensor of them.
_FILLING = {"torch.Tensor.fill_": "torch.full_like", "torch.Tensor.zero_": "torch.zeros_like"}
#: Functions of Python's that return numbers.
_NUMBERS = frozenset("int float len round min max abs sum pow".split())
_Plain = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.If | ast.Pass


@dataclass(frozen=True)
class Moved:
    """An input of the second step that a statement between the two makes.

    code: what is computed before the first step.  value: its expression in the statement, if
    the statement binds the input and does not change it.
    """

    path: str
    code: str
    value: ast.expr | None


@dataclass(frozen=True)
class Joint:
    """What two plans become together.

    shared: the names of what is computed for both and read by either.  unread: what is computed
    for both and nothing else reads.  moved: as `Moved`.  between: names that the statements between
    the two read or bind.  beside: the paths of the objects in the second forward part, without what
    is shared; None if it calls what may reach others.
    """

    first: StepPlan
    second: StepPlan
    shared: tuple[str, ...]
    unread: frozenset[str]
    moved: tuple[Moved, ...]
    between: frozenset[str]
    beside: tuple[str, ...] | None


def joints_of(plans: list[StepPlan], file: FileEdit, drawing: Collection[str]) -> Iterator[Joint]:
    """The pairs of following steps that can be taken as one; drawing: APIs that draw."""
    by_line = sorted(plans, key=lambda plan: plan.call.lineno)
    taken: set[int] = set()
    for first, second in itertools.pairwise(by_line):
        if second.again.statements and id(first) not in taken:
            of_loop = [plan for plan in by_line if plan.loop is first.loop]
            joint = _joint(first, second, of_loop, file, drawing)
            if joint is not None:
                taken.add(id(second))
                yield joint


def _joint(
    first: StepPlan,
    second: StepPlan,
    plans: list[StepPlan],
    file: FileEdit,
    drawing: Collection[str],
) -> Joint | None:
    """What two of a loop's plans become; None where they stay apart."""
    if first.loop is not second.loop or first.again.statements:
        return None
    rest = [s for s in first.forward if s not in second.again.statements]
    if len(rest) + len(second.again.statements) != len(first.forward):
        return None  # not all of it is the first step's
    if first.share not in (Share.WHOLE, Share.LAST) or second.share is not Share.WHOLE:
        return None
    if not (_is_plain(first, file) and _is_plain(second, file)):
        return None
    gone = {s for plan in (first, second) for s in (*plan.forward, *plan.removed)}
    lines = range(first.call.lineno + 1, second.call.lineno)
    between = [s for s in first.loop.body if s.lineno in lines and s not in gone]
    results = set().union(*(bound_by(s) for plan in plans for s in plan.computed))
    reader = _Between(first, second, between, results, file, drawing)
    made = set().union(*map(bound_by, second.again.statements))
    if made & set().union(*map(bound_by, rest)) or not reader.are_harmless():
        return None
    unread = _unread(made, first, second, gone, file)
    needed = {*first.outputs} - unread | read_by(*rest, first.loss, *second.forward, second.loss)
    shared = tuple(sorted(made & needed))
    if any(may_be_number(name, file) for name in read_by(*second.again.statements)):
        return None  # MindSpore's `vjp` takes tensors alone
    moved = reader.moved()
    if moved is None:
        return None
    names = frozenset(read_by(*between).union(*map(bound_by, between)))
    return Joint(first, second, shared, unread, moved, names, _called_by(second, file))


def may_be_number(name: str, file: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a name counts rounds, or is bound to what only computes with numbers."""
    if name in seen:
        return False
    for loop in file.tree.of(ast.For):
        if name in counted_by(loop):
            return True
    values = [
        value
        for node in file.tree.of(ast.Assign)
        for target in node.targets
        for one, value in pairs_of(target, node.value)
        if isinstance(one, ast.Name) and one.id == name
    ]
    return any(_is_number(value, file, seen | {name}) for value in values)


def _is_number(value: ast.expr, file: FileEdit, seen: frozenset[str]) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float))
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand, file, seen)
    if isinstance(value, ast.BinOp):
        return all(_is_number(part, file, seen) for part in (value.left, value.right))
    if isinstance(value, ast.IfExp):
        return any(_is_number(part, file, seen) for part in (value.body, value.orelse))
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") in _NUMBERS
    return isinstance(value, ast.Name) and may_be_number(value.id, file, seen)


def _called_by(plan: StepPlan, file: FileEdit) -> tuple[str, ...] | None:
    """The objects of a forward part; None if it calls anything else that is not torch's."""
    parts = (*plan.forward, plan.loss)
    found: dict[str, None] = {}
    for call in calls_in(parts):
        use, path = file.use(call.func), path_of(call.func)
        is_torch = use is not None and use.api.startswith("torch.")
        if path not in plan.names.objects and not is_torch:
            return None
    for node in (node for part in parts for node in ast.walk(part)):
        if path_of(node) in plan.names.objects:
            found[path_of(node)] = None
    return tuple(found)


def _is_plain(plan: StepPlan, file: FileEdit) -> bool:
    """Whether a step is forward part, gradients and update alone, in the loop itself."""
    names = plan.names
    return (
        plan.form is Form.FUSED and not plan.scaler and not plan.scaling and not plan.versions
        and plan.branches is None and plan.descent is None and plan.phase is None
        and not plan.beside and not plan.carried and not plan.keeps_norm
        and (plan.clip is None or is_number(plan.clip.bound))
        and not (names.spread or names.reported or names.lists or names.own_calls)
        and not names.attributes and all(path_of(_parsed(path)) for path in names.inputs)
        and file.tree.parents[plan.call] is plan.loop
    )  # fmt: skip


def _parsed(path: str) -> ast.expr:
    return ast.parse(path, mode="eval").body


def _unread(
    made: Iterable[str], first: StepPlan, second: StepPlan, gone: set[ast.stmt], file: FileEdit
) -> frozenset[str]:
    """The names that nothing but the two steps reads."""
    inside = {node for s in (*gone, first.loss, second.loss) for node in ast.walk(s)}
    outside = {n.id for n in names_read(scope_of(first.loop, file)) if n not in inside}
    return frozenset(made) - outside


@dataclass
class _Between:
    """The statements between two steps, which are done behind both.

    computed: names whose values the steps of the loop compute, which are no parameters.
    """

    first: StepPlan
    second: StepPlan
    statements: list[ast.stmt]
    computed: set[str]
    file: FileEdit
    drawing: Collection[str]

    def __post_init__(self) -> None:
        self.freedom = Freedom(self.file, guesses=False)
        self.results = {*self.first.outputs}.union(*map(bound_by, self.first.forward))
        self.own_names = set().union(*map(bound_by, self.first.loop.body))

    def are_harmless(self) -> bool:
        """Whether each does the same once the second step is taken."""
        learning = self._learning()
        own = self.own_names - learning
        given = {part.arg for part in self.file.tree.of(ast.arg)} - own
        for s in self.statements:
            if not _holds_plain_statements(s) or self._draws(s):
                return False
            is_write = not self.freedom.is_free(s)
            if is_write and not self.freedom.is_write_to(own, s):
                return False
            if is_write and any(self._is_shared(name) for name in changed_by(s, self.file)):
                return False
            if (read_by(s) | paths_read(s)) & learning or _computes_of(given, s):
                return False
        return True

    def _is_shared(self, name: str) -> bool:
        """Whether a tensor may have another name, which would see what is written into it."""
        for node in self.file.tree.of(ast.Assign):
            bound = bound_by(node)
            for value in getattr(node.value, "elts", [node.value]):
                root = root_of(value)
                read = "" if root is None or self.file.use(root) is not None else root.id
                if (read == name and bound != {name}) or (name in bound and read in self.own_names):
                    return True
        return False

    def _learning(self) -> set[str]:
        """Names and paths that may be, or hold, parameters of the networks and what steps."""
        found = {*self.first.names.objects, *self.second.names.objects}
        while more := self._made_of(found) - found - self.computed:
            found |= more
        return found

    def _made_of(self, known: set[str]) -> set[str]:
        """The names and paths that are bound to what reads one of these, or that take it in."""
        tree, found = self.file.tree, set[str]()
        for node in tree.of(ast.Assign):
            if (read_by(node.value) | paths_read(node.value)) & known:
                found |= {path_of(part) for top in node.targets for part in ast.walk(top)}
        for loop in tree.of(ast.For, ast.comprehension):
            if read_by(loop.iter) & known:
                found |= bound_by(loop.target)
        for call in tree.of(ast.Call):
            path, method = method_of(call)
            if method in OF_CONTAINERS and (read_by(*call.args) & known):
                found.add(path)
        return found - {"", "self"}

    def _draws(self, statement: ast.stmt) -> bool:
        """Whether torch's random numbers may be drawn."""
        uses = (self.file.use(call.func) for call in calls_in([statement]))
        return any(use is not None and use.api in self.drawing for use in uses)

    def moved(self) -> tuple[Moved, ...] | None:
        """What the second step reads of these statements; None where that cannot be said before."""
        found: list[Moved] = []
        again = paths_read(*self.second.again.statements)
        own = paths_read(*self.second.forward, self.second.loss)
        for path in self.second.names.inputs:
            root = path.partition(".")[0].partition("[")[0]
            changing = [s for s in self.statements if self._changes(s, path, root)]
            if root in self.results or (changing and (path in again or path != root)):
                return None
            if not changing or path not in own:
                continue
            one = self._moved(path, changing[0]) if len(changing) == 1 else None
            if one is None:
                return None
            found.append(one)
        return tuple(found)

    def _changes(self, statement: ast.stmt, path: str, root: str) -> bool:
        changed = bound_by(statement) | changed_by(statement, self.file)
        return bool(changed & {path, root})

    def _moved(self, path: str, statement: ast.stmt) -> Moved | None:
        """The input as it is before the first step; None where it depends on what is between."""
        earlier = [s for s in self.statements if s.lineno < statement.lineno]
        changed = self.results.union(*(bound_by(s) | changed_by(s, self.file) for s in earlier))
        text = self.file.text
        call = statement_call(statement)
        if call is not None and isinstance(call.func, ast.Attribute):
            use = self.file.use(call.func)
            made = _FILLING.get(use.api, "") if use is not None else ""
            if not made or path_of(call.func.value) != path or call.keywords:
                return None
            given = [path, *(text.original[slice(*text.span(part))] for part in call.args)]
            read, value, code = read_by(call), None, f"{made}({', '.join(given)})"
        elif isinstance(statement, ast.Assign) and path_of(statement.targets[-1]) == path:
            value = statement.value
            read, code = read_by(value), text.original[slice(*text.span(value))]
            if len(statement.targets) > 1 or not self._is_pure(value):
                return None
        else:
            return None
        return None if read & changed or "\n" in code else Moved(path, code, value)

    def _is_pure(self, value: ast.expr) -> bool:
        """Whether a value is torch's alone, and made of nothing that computing it changes."""
        return all(
            use is not None and use.api.startswith("torch.") and not use.api.endswith("_")
            for call in calls_in([value])
            for use in [self.file.use(call.func)]
        )


def _holds_plain_statements(statement: ast.stmt) -> bool:
    """Whether a statement ends no round and raises nothing of its own."""
    return all(isinstance(s, _Plain) for s in ast.walk(statement) if isinstance(s, ast.stmt))


def _computes_of(names: set[str], statement: ast.stmt) -> bool:
    """Whether one of these names, of which nothing is known, is computed with as a tensor."""
    return any(
        method_of(call)[0] in names and method_of(call)[1] in TENSORS
        for call in calls_in([statement])
    )
