"""What an earlier step of a round has computed, and a later loss goes back through.

fake = generator(z)
criterion(discriminator(fake.detach()), zeros).backward()
optimizer_D.step()
criterion(discriminator(fake), ones).backward()
optimizer_G.step()

MindSpore differentiates functions: the second step computes `fake` once more, unless both are one
step (`joints`).  It is the same where nothing of it has changed meanwhile, and nothing is drawn.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import changed_by, paths_read
from isograd.convert.training.freedom import is_detached
from isograd.convert.training.model import Again, EagerError, Names
from isograd.convert.training.paths import (
    bound_by,
    calls_in,
    method_of,
    names_read,
    path_of,
    read_before_bound,
    read_by,
    statement_call,
)
from isograd.convert.training.turns import Turn
from isograd.convert.tree import is_true

#: What a turn's step replaces.
_OF_STEPS = ("zero_grad", "backward", "step")


def keeps_graph(call: ast.Call) -> bool:
    """Whether `backward(retain_graph=True)` says nothing but that more may go back the same way."""
    given = [one.arg == "retain_graph" and is_true(one.value) for one in call.keywords]
    return given == [True] and not call.args


def computed_again(
    file: FileEdit,
    tainted: Mapping[ast.stmt, bool],
    own: list[ast.stmt],
    forward: list[ast.stmt],
    loss: ast.expr,
) -> list[ast.stmt]:
    """The statements of earlier turns that a loss goes back through; raises EagerError.

    tainted: all statements of the earlier turns, as `tainted_in` says.  own: those of the loss's
    turn, with its forward part.  What is read of the earlier ones by `detach()` is a value.
    """
    earlier = list(tainted)
    shared = _shared(file, own, forward, loss, names_with_graphs(tainted))
    needed, paths = {node.id for node in shared}, {node.id for node in shared}
    found: list[ast.stmt] = []
    for s in reversed(earlier):
        changes = bound_by(s) & needed or changed_by(s, file) & paths
        if not changes:
            continue
        if not tainted[s]:
            needed -= _surely_bound(s)
            continue
        if not _is_binding(s):
            raise EagerError(s, f"{min(needed)} is computed before another step, and not by '='")
        if any(file.carrying.is_module_call(call) for call in calls_in([s])):
            raise EagerError(s, f"{min(bound_by(s))} is made anew in each round")
        needed = (needed - bound_by(s)) | read_by(s)
        paths |= paths_read(s)
        found.insert(0, s)
    if shared and not found:
        raise EagerError(shared[0], f"the graph of {shared[0].id} is shared by two losses")
    _look_at_graphs(file, found, earlier)
    return found


def names_with_graphs(tainted: Mapping[ast.stmt, bool]) -> set[str]:
    """The names that may hold a graph behind these statements, as `tainted_in` says."""
    found = set[str]()
    for s, is_tainted in tainted.items():
        found = found | bound_by(s) if is_tainted else found - _surely_bound(s)
    return found


def _look_at_graphs(file: FileEdit, again: list[ast.stmt], earlier: list[ast.stmt]) -> None:
    """Raise EagerError where an earlier loss goes back the same way: its graph is freed."""
    reached: set[str] = set()
    for s in earlier:
        read = {n.id for n in names_read(s) if not is_detached(n, file)} & reached
        if read and method_of(statement_call(s) or s)[1] == "backward":
            name = min(bound_by(again[-1]))
            raise EagerError(s, f"the graph of {name} is shared by two losses")
        if s in again or read:
            reached |= bound_by(s)
        elif _is_binding(s):
            reached -= bound_by(s)


def look_at_changes(
    file: FileEdit, again: list[ast.stmt], between: list[ast.stmt], names: Names, turn: Turn
) -> Again:
    """What is computed again with what it calls; raises EagerError where it would be another value.

    between: the statements of the round up to the step that computes it again.
    """
    if not again:
        return Again()
    bound = set().union(*map(bound_by, again))
    if both := read_before_bound(again, set()) & bound:
        raise EagerError(again[0], f"{min(both)} is computed of its own earlier value")
    own = [
        path
        for path in names.objects
        if any(path_of(node) == path for s in again for node in ast.walk(s))
    ]
    for s in again:
        for other in between:
            if other.lineno <= s.lineno or other in again:
                continue
            if (bound_by(other) | changed_by(other, file)) & (read_by(s) | paths_read(s)):
                what = f"what {ast.unparse(s)} reads changes"
                raise EagerError(other, f"{what} before the step that computes it again")
            if _mentions(other, own, file):
                raise EagerError(other, f"{', '.join(own)} may change before it is computed again")
    stepped = [path for line, path in turn.stepped if line > again[0].lineno]
    return Again(tuple(again), tuple(own), tuple(dict.fromkeys(stepped)))


def _shared(
    file: FileEdit,
    own: list[ast.stmt],
    forward: list[ast.stmt],
    loss: ast.expr,
    depends: set[str],
) -> list[ast.Name]:
    """The names with a graph of an earlier turn that a forward part reads."""
    known: set[str] = set()
    found = []
    for part in (*own, loss):
        if isinstance(part, ast.stmt) and part not in forward:
            known |= _surely_bound(part)
            continue
        before = read_before_bound([part], set(known)) if isinstance(part, ast.stmt) else None
        for node in names_read(part):
            is_read = node.id in before if before is not None else node.id not in known
            if is_read and node.id in depends and not is_detached(node, file):
                found.append(node)
        if isinstance(part, ast.stmt):
            read_before_bound([part], known)
    return found


def _is_binding(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and bool(bound_by(statement))


def _surely_bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives other values, whatever happens."""
    if isinstance(statement, ast.With):
        return set().union(*map(_surely_bound, statement.body))
    return bound_by(statement) if _is_binding(statement) else set()


def _mentions(statement: ast.stmt, paths: list[str], file: FileEdit) -> bool:
    """Whether a statement, or a function of the file that it calls, has to do with an object."""
    calls = [*calls_in([statement])]
    replaced = {c.func.value for c in calls if method_of(c)[1] in _OF_STEPS}  # type: ignore[attr-defined] # a method
    called = {getattr(c.func, "id", "") or getattr(c.func, "attr", "") for c in calls}
    functions = [f for f in file.tree.of(ast.FunctionDef) if f.name in called]
    for top in (statement, *functions):
        for node in ast.walk(top):
            if node not in replaced and path_of(node) in paths:
                return True
    return False
