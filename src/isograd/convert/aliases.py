"""Aliases and views of a tensor that is changed in place, in the function or module around it.

In torch a view and its base share memory.  In MindSpore 2.10 `y[...] = value` reaches all names of
y, and the base of which y is a slice taken by numbers; it does not reach the base of a reshaped,
transposed, split or detached tensor, and no slice that was taken of y before
(tests/convert/test_in_place.py executes it).
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import replace
from functools import cached_property

from isograd.convert.analysis.buffers import are_apart
from isograd.convert.bindings import Bindings
from isograd.convert.indexes import are_apart as are_apart_by_index
from isograd.convert.origins import Binding, Origin, Reach, Sight
from isograd.convert.tree import (
    counted_by,
    first_argument,
    names_of,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ASSIGNED = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


class Scope(Bindings):
    """The bindings and readings of the names of one function, or of a module."""

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the scope binds."""
        return frozenset(binding.name for binding in self._bindings if binding.is_of_name)

    def counts(self, name: str) -> bool:
        """Whether a name is bound to numbers: by a range, an enumeration or a constant."""
        for node in self.nodes:
            if isinstance(node, ast.For) and name in names_of(node.target):
                counters = counted_by(node)
                if counters:
                    return name in counters
        return any(isinstance(value, ast.Constant) for value in self.values_of(name))

    def is_element(self, name: str) -> bool:
        """Whether a loop binds a name to what something holds, and not to numbers."""
        return any(
            isinstance(node, (ast.For, ast.AsyncFor)) and name in names_of(node.target)
            for node in self.nodes
        ) and not self.counts(name)

    def is_from_outside(self, name: str, at: ast.AST) -> bool:
        """Whether a name may hold all of a tensor of the caller, an object or what a loop reads.

        It may be a Parameter of a network then.
        """
        waiting, known = [(name, at)], set[Binding]()
        while waiting:
            one, node = waiting.pop()
            before = self.reaching(one, node)
            if not before and (one in self.parameters or one not in self.bound):
                return True
            for binding in before:
                if binding in known:
                    continue
                known.add(binding)
                if isinstance(binding.statement, _LOOPS):
                    return True
                for origin in binding.origins:
                    if origin.reach is Reach.SHARED and origin.root is None:
                        return True
                    if origin.reach is Reach.SHARED and origin.root is not None:
                        waiting.append((origin.root, binding.statement))
        return False

    def sight(self, name: str, write: ast.AST, *, is_whole: bool = True) -> Sight:
        """Who sees the tensor that a name holds where it is written to.

        is_whole: whether all of it is written, so that slices taken before would have to see it.
        """
        reaching = self.reaching(name, write)
        found = Sight(Reach.ALONE)
        if not reaching:  # from outside
            found = Sight(Reach.SHARED, argument=self._argument(name))
        for binding in reaching:
            for origin in binding.origins:
                found = max(found, self._seen(origin, binding, write), key=_reach)
        if found.reach is Reach.SLICE:
            found = replace(found, reach=Reach.SHARED)
        first = min((_start(binding.statement) for binding in reaching), default=(0, 0))
        others = self._held_by(name, write, first, is_whole)
        for other, is_all in self._made_of(name, write).items():
            held = self._held_by(other, write, (0, 0), is_whole and is_all)
            others += [seen for seen in held if not self._are_apart(name, seen.name)]
        return max(found, *others, key=_reach)

    def sight_at_any_time(self, name: str) -> Sight:
        """Who may see a tensor of this scope where an inner function writes to it."""
        one = {name}
        pairs = [(b.name, origin) for b in self._bindings for origin in b.origins if origin.root]
        for _ in pairs:
            known = len(one)
            for other, origin in pairs:
                if one.intersection((other, origin.root)):
                    one.update((other, str(origin.root)))
            if len(one) == known:
                break
        for other, origin in pairs:
            is_lost = origin.reach is Reach.LOST or (origin.reach is Reach.SLICE and other != name)
            if is_lost and other in one:
                return Sight(Reach.LOST, str(origin.root) if other == name else other)
        return Sight(Reach.SHARED, argument=self._argument(name))

    def is_read_behind(self, name: str, node: ast.AST) -> bool:
        """Whether the tensor that a name holds at a node is read behind it by that name."""
        bound = self.statements_of(name, node)
        if not bound and isinstance(self.node, ast.Module):
            return True
        return any(self._is_live(name, since, node) for since in bound or [self.node])

    def _argument(self, name: str) -> str:
        return name if name in self.parameters else ""

    def is_part(self, name: str, at: ast.AST) -> bool:
        """Whether a name may hold a view of another tensor."""
        return any(
            origin.reach in (Reach.SLICE, Reach.LOST)
            for binding in self.reaching(name, at)
            for origin in binding.origins
        )

    def statements_of(self, name: str, at: ast.AST) -> list[ast.AST]:
        """The statements that may have bound what a name holds at a node."""
        return [binding.statement for binding in self.reaching(name, at)]

    def _made_of(self, name: str, at: ast.AST) -> dict[str, bool]:
        """The names of a tensor, or of what it is a slice of; whether they are of all of it."""
        found: dict[str, bool] = {}
        waiting = [(name, at, True)]
        while waiting:
            one, node, is_all = waiting.pop()
            for binding in self.reaching(one, node):
                for origin in binding.origins:
                    root, is_one = origin.root, is_all and origin.reach is Reach.SHARED
                    if root is None or root == name or (root in found and found[root] >= is_one):
                        continue
                    if origin.reach in (Reach.SHARED, Reach.SLICE):
                        found[root] = is_one
                        waiting.append((root, binding.statement, is_one))
        return found

    def _are_apart(self, name: str, other: str) -> bool:
        """Whether two names are one, or hold parts of one tensor that are surely others."""
        if name == other:
            return True
        ones, others = self.bindings_of(name), self.bindings_of(other)
        if len(ones) == len(others) == 1 and ones[0].statement is others[0].statement:
            if ones[0].value is others[0].value is None:  # what one statement unpacks
                return True
        values = [(a, b) for a in self.values_of(name) for b in self.values_of(other)]
        return bool(values) and all(are_apart_by_index(*pair) for pair in values)

    def _held_by(
        self, name: str, write: ast.AST, first: tuple[int, int], is_whole: bool
    ) -> list[Sight]:
        """What was bound to a tensor since it got its name, and is read after it is written.

        is_whole: whether views are to be found as well, which a write by an index reaches.
        """
        found = [Sight(Reach.ALONE)]
        for binding in self._bindings:
            statement = binding.statement
            is_between = first <= _start(statement) < _start(write)
            if not (is_between or self._in_common_loop(statement, write, first)):
                continue
            if binding.name == name or self._is_around(binding.value or statement, write):
                continue
            if are_apart(statement, write, self._tree):
                continue
            for origin in binding.origins:
                if origin.root != name or not self._holds(name, statement, write):
                    continue
                if self._is_live(binding.name, statement, write):
                    is_one = origin.reach <= Reach.SHARED or not (is_whole or origin.is_copied)
                    found.append(Sight(Reach.SHARED if is_one else Reach.LOST, binding.name))
        return found

    def _holding(self, name: str, rebound: ast.AST, write: ast.AST) -> list[str]:
        """The other names of all of what a name held before it was bound anew."""
        return [
            binding.name
            for binding in self._bindings
            if binding.name != name
            and _start(binding.statement) < _start(rebound)
            and Origin(Reach.SHARED, name) in binding.origins
            and self._holds(name, binding.statement, rebound)
            and self._is_live(binding.name, binding.statement, write)
        ]

    def _is_around(self, statement: ast.AST, write: ast.AST) -> bool:
        """Whether a write is the value that is bound: `z = y.add_(1)`."""
        if isinstance(statement, _LOOPS):
            return False
        return any(part is statement for part in self._tree.above(write))

    def _seen(self, origin: Origin, binding: Binding, write: ast.AST) -> Sight:
        """Who sees a tensor through what it was made of, and what that was made of."""
        found = Sight(Reach.ALONE)
        waiting, known = deque([(origin, binding)]), set[tuple[Origin, Binding]]()
        while waiting:
            pair = waiting.popleft()
            (reach, root), at = (pair[0].reach, pair[0].root), pair[1]
            if reach is Reach.ALONE or pair in known or pair[0].is_array:
                continue
            if pair[0].is_of_array and at is not binding:
                continue
            known.add(pair)
            if root is None:
                found = max(found, Sight(reach), key=_reach)
                continue
            is_rebound = root == at.name  # `x = x.view(-1)`: the old name is gone
            if is_rebound:
                for other in self._holding(root, at.statement, write):
                    found = max(found, Sight(reach, other), key=_reach)
            elif self._is_live(root, at.statement, write):
                found = max(found, Sight(reach, root), key=_reach)
            before = self.reaching(root, at.statement)
            if not before:
                found = max(found, Sight(reach, "", self._argument(root)), key=_reach)
            for earlier in before:
                for further in earlier.origins:
                    if further.reach is not Reach.ALONE:
                        joined = replace(further, reach=max(further.reach, reach))
                        waiting.append((joined, earlier))
        return found

    def is_copied_back(self, name: str, root: str, write: ast.AST) -> bool:
        """Whether `p.data.copy_(values)` always follows a change of `values = p.data.float()`.

        root: p, which nothing may read between the two.
        """
        return any(
            isinstance(node, ast.Call)
            and _copies(node, name, root)
            and _start(node) > _end(write)
            and self._always_before(node, write)
            and not self._is_read_between(root, write, node)
            for node in self.nodes
        )

    def _is_read_between(self, name: str, first: ast.AST, last: ast.AST) -> bool:
        return any(
            isinstance(node, ast.Name)
            and node.id == name
            and _end(first) <= _start(node) < _start(last)
            for node in self.nodes
        )

    def reaching(self, name: str, at: ast.AST) -> list[Binding]:
        """The bindings whose tensor a name may hold at a node."""
        bound = self._bindings_by_name.get(name, ())
        own = [b for b in bound if not isinstance(b.statement, ast.Call)]
        own = [b for b in own if not are_apart(b.statement, at, self._tree)]
        before = [
            b
            for b in own
            if _start(b.statement) < _start(at) and not self._is_bound_to(at, b.statement)
        ]
        sure = [b for b in before if self._always_before(b.statement, at)]
        last = max((_start(b.statement) for b in sure), default=None)
        if last is None:
            if name in self.parameters or not own:
                return []
            return own
        kept = [b for b in before if _start(b.statement) >= last]
        later = [
            b
            for b in own
            if _start(b.statement) >= _start(at) and self._in_common_loop(b.statement, at, last)
        ]
        return [*kept, *later]

    def _is_bound_to(self, node: ast.AST, statement: ast.AST) -> bool:
        """Whether a node is evaluated before an assignment binds: the call in `x = relu_(x)`."""
        return isinstance(statement, _ASSIGNED) and self._is_around(statement, node)

    def _always_before(self, node: ast.AST, other: ast.AST) -> bool:
        """Whether a statement has run whenever control comes to another node."""
        if isinstance(node, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
            if any(part is node for part in self._tree.above(other)):
                return True
        block = self._block(node)
        around: ast.AST | None = other
        while around is not None:
            if any(around is item for item in block):
                return True
            around = self._tree.parents.get(around)
        return False

    def _block(self, node: ast.AST) -> list[ast.AST]:
        """The statements of the block in which a node's statement stands."""
        statement = self._tree.statement(node)
        parent = self._tree.parents.get(statement)
        for _, value in ast.iter_fields(parent) if parent is not None else ():
            if isinstance(value, list) and any(item is statement for item in value):
                return value
        return []

    def _in_common_loop(self, node: ast.AST, other: ast.AST, after: tuple[int, int]) -> bool:
        """Whether both stand in one loop that begins after a place."""
        around = {part for part in self._tree.above(node) if isinstance(part, _LOOPS)}
        return any(part in around and _start(part) > after for part in self._tree.above(other))

    def _holds(self, name: str, since: ast.AST, at: ast.AST) -> bool:
        """Whether a name surely was not bound anew between two nodes."""
        return not any(
            b.name == name
            and b.is_of_name
            and _start(since) < _start(b.statement) < _start(at)
            and not self._is_bound_to(at, b.statement)
            and self._always_before(b.statement, at)
            for b in self._bindings
        )

    @cached_property
    def _read_at_any_time(self) -> frozenset[str]:
        """The names that inner functions read, and the members of classes."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                found.update(names_of(node))
            elif isinstance(node, ast.ClassDef):
                found.update(
                    name.id
                    for statement in node.body
                    for name in ast.walk(statement)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                )
        return frozenset(found)

    def _is_bound_anew(self, name: str, since: ast.AST) -> bool:
        """Whether a name of a module surely holds something else when the module has run."""
        return any(
            binding.name == name
            and binding.is_of_name
            and _start(binding.statement) > _start(since)
            and any(binding.statement is statement for statement in self.node.body)
            for binding in self._bindings
        )

    def _is_live(self, name: str, since: ast.AST, write: ast.AST) -> bool:
        """Whether what a name held at a binding is read behind a write.

        Other files and inner functions may read a module's names whenever they hold it.
        """
        if "." in name or name in self._read_at_any_time:
            return True
        if isinstance(self.node, ast.Module) and not self._is_bound_anew(name, since):
            return True
        for node in self.nodes:
            if not (isinstance(node, ast.Name) and node.id == name):
                continue
            if not isinstance(node.ctx, ast.Load):
                continue
            if _start(node) > _end(write):
                if self._holds(name, since, node):
                    return True
            elif self._in_common_loop(node, write, _start(since)):
                return True
        return False


def _copies(call: ast.Call, name: str, root: str) -> bool:
    """Whether a call is `root.copy_(name)` or `root.data.copy_(name)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "copy_":
        return False
    to: ast.expr = call.func.value
    while isinstance(to, ast.Attribute):
        to = to.value
    given = first_argument(call, "src")
    return getattr(to, "id", "") == root and getattr(given, "id", "") == name


def _reach(sight: Sight) -> tuple[Reach, bool]:
    return sight.reach, not sight.is_argument


def _start(node: ast.AST) -> tuple[int, int]:
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def _end(node: ast.AST) -> tuple[int, int]:
    return (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
