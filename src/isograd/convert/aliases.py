"""Who else sees a tensor that is changed in place, read from the function around the change.

In torch a view and its base share memory.  In MindSpore 2.10 `y[...] = value` reaches all names of
y, and the base of which y is a slice taken by numbers; it does not reach the base of a reshaped,
transposed, split or detached tensor, and no slice that was taken of y before
(tests/convert/test_in_place.py executes it).
"""

from __future__ import annotations

import ast
import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from isograd.convert.held_data import owner_of
from isograd.convert.tree import (
    Tree,
    counted_by,
    first_argument,
    is_none,
    names_of,
    pairs_of,
    parts_of,
)
from isograd.scan.behaviour import VIEWS

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_RESHAPED_ATTRIBUTES = frozenset(("T", "mT", "H", "mH", "data", "real", "imag"))
_SEVERAL = frozenset(
    "chunk split tensor_split unbind hsplit vsplit dsplit split_with_sizes".split()
)
#: Methods, and functions of their first argument, whose result shares memory but no writes.
_RESHAPED = (VIEWS - _RESHAPED_ATTRIBUTES) | _SEVERAL.union(
    (
        *("flatten", "reshape", "reshape_as", "ravel", "broadcast_to"),
        *("as_tensor", "asarray", "atleast_1d", "atleast_2d", "atleast_3d"),
    )
)
#: Views whose elements lie in another order, so that `contiguous` copies them.
_REORDERED = frozenset(
    "t T mT H mH transpose permute swapaxes swapdims movedim moveaxis adjoint".split()
)
#: Views of each element once, computed from places alone; `reshape` and `flatten` may copy.
_REARRANGING = _REORDERED.difference(("H", "mH", "adjoint")).union(
    "view view_as unflatten squeeze unsqueeze diagonal narrow select".split()
)
_SIZES = frozenset("shape size dim ndim numel".split())
#: What returns its tensor where there is nothing to do.
_SAME = frozenset("contiguous to float cpu cuda type type_as requires_grad_".split())
#: Functions that return their argument where there is nothing to do.
_PASSING = frozenset(
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()
)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ASSIGNED = (ast.Assign, ast.AnnAssign, ast.NamedExpr)
_BRACKETS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.DictComp)


class Reach(IntEnum):
    """How much of a write in place others have to see, and whether a port's write reaches them."""

    ALONE = 0
    SHARED = 1
    #: Of a binding: a part of the tensor, taken by numbers.  No answer of `Function.sight`.
    SLICE = 2
    LOST = 3


@dataclass(frozen=True)
class Sight:
    """reach, and the name that sees the tensor; empty for the caller or an object.

    is_argument: whether nobody but the caller is known to see it.
    """

    reach: Reach
    name: str = ""
    is_argument: bool = False


@dataclass(frozen=True)
class _Origin:
    """reach: how the tensor is one with the root's; root: a name, or None for outside."""

    reach: Reach
    root: str | None


@dataclass(frozen=True)
class _Binding:
    """value: what is bound, where a part of the statement is: b of `x, y = a, b`."""

    statement: ast.AST
    name: str
    origins: tuple[_Origin, ...]
    value: ast.expr | None = None

    @property
    def is_of_name(self) -> bool:
        """Whether the name is bound, rather than something put into what it holds."""
        return not isinstance(self.statement, ast.Call)


def origin_of_write(target: ast.expr, named: Mapping[ast.AST, str]) -> tuple[ast.expr, Reach]:
    """What is behind the expression that is written to, and whether a port's write reaches it.

    named: the torch functions that names, attributes and layers of the file stand for.
    """
    reach = Reach.ALONE
    node = target
    while True:
        step = _step(node, named)
        if step is None:
            return node, reach
        node, here = step
        reach = max(reach, here)


def rearranged(target: ast.expr, named: Mapping[ast.AST, str]) -> ast.Name | None:
    """x of `x.view(-1)` and `x[0].t()`: a view of elements of x by their places alone."""
    node = target
    while not isinstance(node, ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else "view"
        if isinstance(node, ast.Call):
            name = _called(node, named)[0]
            if any(part in named for part in node.args if name == "view"):
                return None  # of another dtype
        step = _step(node, named)
        if step is None or name not in _REARRANGING:
            return None
        node = step[0]
    inside = [part for part in ast.walk(target) if isinstance(part, ast.Attribute)]
    asked = sum(_is_name(part.value, node.id) for part in inside if part.attr in _SIZES)
    used = sum(_is_name(part, node.id) for part in ast.walk(target))
    return node if used == asked + 1 else None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def is_taken_by_copy(node: ast.expr) -> bool:
    """Whether a subscript takes by a list or a condition, so that torch copies."""
    if not isinstance(node, ast.Subscript):
        return False
    kinds = (ast.List, ast.Compare, ast.ListComp)
    return any(isinstance(part, kinds) for part in parts_of(node.slice))


def _step(node: ast.expr, named: Mapping[ast.AST, str]) -> tuple[ast.expr, Reach] | None:
    """The tensor that an expression is a view of; None where it is a tensor of its own."""
    if isinstance(node, ast.Subscript) and not is_taken_by_copy(node):
        return node.value, Reach.SLICE
    if isinstance(node, ast.Attribute) and node.attr in _RESHAPED_ATTRIBUTES:
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        return None if is_own else (node.value, Reach.LOST)
    if not isinstance(node, ast.Call):
        return None
    is_function = node.func in named
    name, base = _called(node, named)
    if base is None:
        return None
    if name in _RESHAPED:
        return base, Reach.LOST
    if name == "contiguous" and _is_reordered(base, named):
        return None
    if name in (_PASSING if is_function else _SAME):
        return base, Reach.SHARED
    if name.endswith("_") and not name.endswith("__"):
        return base, Reach.SHARED
    return None


def _is_reordered(node: ast.expr, named: Mapping[ast.AST, str]) -> bool:
    """Whether a view's elements lie in another order than its tensor's."""
    if isinstance(node, ast.Attribute):
        return node.attr in _REORDERED
    return isinstance(node, ast.Call) and _called(node, named)[0] in _REORDERED


def _adds_axis(index: ast.expr) -> bool:
    """Whether an index holds a None, which reshapes: a name of it is no way to x."""
    return any(is_none(part) for part in parts_of(index))


def _unrepeated(value: ast.expr) -> ast.expr:
    """The list of `[x] * 3`, whose elements are one tensor."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for side in (value.left, value.right):
            if isinstance(side, (ast.List, ast.Tuple)):
                return side
    return value


def _called(node: ast.Call, named: Mapping[ast.AST, str]) -> tuple[str, ast.expr | None]:
    """The last name of a call's function, and its tensor: its receiver or its first argument."""
    if node.func in named:
        return named[node.func].rpartition(".")[2], first_argument(node, "input")
    if isinstance(node.func, ast.Attribute):
        return node.func.attr, node.func.value
    return "", None


class Function:
    """The bindings and readings of one function's own names.

    held: expressions `x.data` that a port writes as x.
    """

    def __init__(
        self,
        node: _Function,
        tree: Tree,
        named: Mapping[ast.AST, str],
        held: Collection[ast.AST] = (),
    ) -> None:
        self._node = node
        self._tree = tree
        self._named = named
        self._held = held
        arguments = node.args
        several = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        self.parameters = {part.arg: part for part in several}

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the function binds."""
        return frozenset(binding.name for binding in self._bindings if binding.is_of_name)

    def values_of(self, name: str) -> list[ast.expr]:
        """What assignments bind to a name, one to one."""
        return self._values.get(name, [])

    def is_container(self, name: str) -> bool:
        """Whether a name is bound to a list, a tuple or a dictionary that is written out."""
        return any(
            isinstance(_unrepeated(value), _BRACKETS)
            or (isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("dict", "list"))
            for value in self.values_of(name)
        )

    def counts(self, name: str) -> bool:
        """Whether a name is bound to numbers: by a range, an enumeration or a constant."""
        for node in self._nodes:
            if isinstance(node, ast.For) and name in names_of(node.target):
                counters = counted_by(node)
                if counters:
                    return name in counters
        return any(isinstance(value, ast.Constant) for value in self.values_of(name))

    def is_element(self, name: str) -> bool:
        """Whether a loop binds a name to what something holds, and not to numbers."""
        return any(
            isinstance(node, (ast.For, ast.AsyncFor)) and name in names_of(node.target)
            for node in self._nodes
        ) and not self.counts(name)

    def is_from_outside(self, name: str, at: ast.AST) -> bool:
        """Whether a name may hold all of a tensor of the caller, an object or what a loop reads.

        It may be a Parameter of a network then.
        """
        waiting, known = [(name, at)], set[_Binding]()
        while waiting:
            one, node = waiting.pop()
            before = self._reaching(one, node)
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
        reaching = self._reaching(name, write)
        found = Sight(Reach.ALONE)
        if not reaching:  # from outside
            found = Sight(Reach.SHARED, is_argument=name in self.parameters)
        for binding in reaching:
            for origin in binding.origins:
                found = max(found, self._seen(origin, binding, write), key=_reach)
        if found.reach is Reach.SLICE:
            found = replace(found, reach=Reach.SHARED)
        if not is_whole:
            return found
        first = min((_start(binding.statement) for binding in reaching), default=(0, 0))
        others = self._held_by(name, write, first)
        for other in self._same(name, write):
            others += [seen for seen in self._held_by(other, write, (0, 0)) if seen.name != name]
        return max(found, *others, key=_reach)

    def _same(self, name: str, at: ast.AST) -> set[str]:
        """The other names of all of a tensor, through which it may have got slices."""
        found: set[str] = set()
        waiting = [(name, at)]
        while waiting:
            one, node = waiting.pop()
            for binding in self._reaching(one, node):
                for origin in binding.origins:
                    root = origin.root
                    if origin.reach is Reach.SHARED and root and root not in found | {name}:
                        found.add(root)
                        waiting.append((root, binding.statement))
        return found

    def _held_by(self, name: str, write: ast.AST, first: tuple[int, int]) -> list[Sight]:
        """What was bound to a tensor since it got its name, and is read after it is written."""
        found = [Sight(Reach.ALONE)]
        for binding in self._bindings:
            statement = binding.statement
            is_between = first <= _start(statement) < _start(write)
            if not (is_between or self._in_common_loop(statement, write, first)):
                continue
            if binding.name == name or self._is_around(binding.value or statement, write):
                continue
            for origin in binding.origins:
                if origin.root != name or not self._holds(name, statement, write):
                    continue
                if self._is_live(binding.name, statement, write):
                    is_one = origin.reach <= Reach.SHARED
                    found.append(Sight(Reach.SHARED if is_one else Reach.LOST, binding.name))
        return found

    def _holding(self, name: str, rebound: ast.AST, write: ast.AST) -> list[str]:
        """The other names of all of what a name held before it was bound anew."""
        return [
            binding.name
            for binding in self._bindings
            if binding.name != name
            and _start(binding.statement) < _start(rebound)
            and _Origin(Reach.SHARED, name) in binding.origins
            and self._holds(name, binding.statement, rebound)
            and self._is_live(binding.name, binding.statement, write)
        ]

    def _is_around(self, statement: ast.AST, write: ast.AST) -> bool:
        """Whether a write is the value that is bound: `z = y.add_(1)`."""
        if isinstance(statement, _LOOPS):
            return False
        return any(part is statement for part in self._tree.above(write))

    def _seen(self, origin: _Origin, binding: _Binding, write: ast.AST) -> Sight:
        """Who sees a tensor through what it was made of, and what that was made of."""
        found = Sight(Reach.ALONE)
        waiting, known = deque([(origin, binding)]), set[tuple[_Origin, _Binding]]()
        while waiting:
            pair = waiting.popleft()
            (reach, root), at = (pair[0].reach, pair[0].root), pair[1]
            if reach is Reach.ALONE or pair in known:
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
            before = self._reaching(root, at.statement)
            if not before:
                found = max(found, Sight(reach, "", root in self.parameters), key=_reach)
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
            for node in self._nodes
        )

    def _is_read_between(self, name: str, first: ast.AST, last: ast.AST) -> bool:
        return any(
            isinstance(node, ast.Name)
            and node.id == name
            and _end(first) <= _start(node) < _start(last)
            for node in self._nodes
        )

    # ---- bindings

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        found: list[ast.AST] = []
        nodes: list[ast.AST] = list(self._node.body)
        while nodes:
            node = nodes.pop()
            found.append(node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            nodes.extend(ast.iter_child_nodes(node))
        return found

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for one, value in pairs_of(target, node.value):
                        is_its_own = one is target or value is not node.value
                        if isinstance(one, ast.Name) and is_its_own:
                            found.setdefault(one.id, []).append(value)
        return found

    @cached_property
    def _bindings(self) -> list[_Binding]:
        return [binding for node in self._nodes for binding in self._bound_by(node)]

    def _bound_by(self, node: ast.AST) -> Iterator[_Binding]:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from self._bound(target, node.value, node)
            yield from self._together(node)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from self._bound(node.target, node.value, node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self._through(node.target, node.iter, node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    for name in names_of(item.optional_vars):
                        yield _Binding(node, name, ())
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr in ("append", "insert", "extend") and isinstance(owner, ast.Name):
                yield _Binding(node, owner.id, self._inside(node.args[-1:]))

    def _together(self, node: ast.Assign) -> Iterator[_Binding]:
        """Names that are bound beside others: `a = b = f(x)`, `buffer = state["buffer"] = f(x)`."""
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        for one, other in itertools.permutations(names, 2):
            yield _Binding(node, one, (_Origin(Reach.SHARED, other),))
        if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            for name in names:
                yield _Binding(node, name, (_Origin(Reach.SHARED, None),))

    def _bound(self, target: ast.expr, value: ast.expr, node: ast.AST) -> Iterator[_Binding]:
        if isinstance(target, ast.Name):
            yield _Binding(node, target.id, self._origins(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, one in zip(target.elts, value.elts, strict=True):
                    for binding in self._bound(part, one, node):
                        yield replace(binding, value=binding.value or one)
                return
            origins = self._of_several(value)
            for name in names_of(target):
                yield _Binding(node, name, origins)
        elif isinstance(target, ast.Attribute):
            for origin in self._origins(value):
                if origin.root is not None:
                    yield _Binding(node, ast.unparse(target), (origin,))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if self.is_container(target.value.id):
                yield _Binding(node, target.value.id, self._origins(value))

    def _through(self, target: ast.expr, source: ast.expr, node: ast.AST) -> Iterator[_Binding]:
        """A loop's names: elements of what it goes through, or rows taken by numbers."""
        origins: tuple[_Origin, ...] = (_Origin(Reach.SHARED, None),)
        if isinstance(source, ast.Name):
            is_listed = self.is_container(source.id)
            origins = (_Origin(Reach.SHARED if is_listed else Reach.SLICE, source.id),)
        elif isinstance(target, ast.Name):
            origins = self._of_several(source) or origins
        for name in names_of(target):
            yield _Binding(node, name, origins)

    def _of_several(self, value: ast.expr) -> tuple[_Origin, ...]:
        if isinstance(value, _BRACKETS):
            return self._inside(ast.iter_child_nodes(value))
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            return self._of_several(value.value)
        if isinstance(value, ast.Call) and _called(value, self._named)[0] in _SEVERAL:
            return self._origins(value)
        if isinstance(value, ast.IfExp):
            return (*self._of_several(value.body), *self._of_several(value.orelse))
        if isinstance(value, ast.Name):
            is_listed = self.is_container(value.id)
            return (_Origin(Reach.SHARED if is_listed else Reach.SLICE, value.id),)
        if isinstance(value, (ast.Attribute, ast.Call)):  # `a, b = x.T`
            return tuple(origin for origin in self._origins(value) if origin.reach is Reach.LOST)
        return ()

    def _inside(self, parts: Iterable[ast.AST]) -> tuple[_Origin, ...]:
        found: list[_Origin] = []
        for part in parts:
            if isinstance(part, ast.expr):
                found += self._origins(part)
        return tuple(found)

    def _origins(self, value: ast.expr) -> tuple[_Origin, ...]:
        if isinstance(value, ast.Name):
            return (_Origin(Reach.SHARED, value.id),)
        if isinstance(value, ast.IfExp):
            return (*self._origins(value.body), *self._origins(value.orelse))
        if isinstance(value, ast.BoolOp):
            return self._inside(value.values)
        if isinstance(value, ast.NamedExpr):
            return self._origins(value.value)
        if value in self._held:
            owner = owner_of(value)
            assert owner is not None
            return self._origins(owner)
        value = _unrepeated(value)
        if isinstance(value, _BRACKETS):
            return self._inside(ast.iter_child_nodes(value))
        root, reach = origin_of_write(value, self._named)
        if isinstance(value, ast.Subscript) and _adds_axis(value.slice):
            reach = Reach.LOST
        if reach is Reach.ALONE and not isinstance(root, ast.Attribute):
            return ()
        if isinstance(root, ast.Name):
            return (_Origin(reach, root.id),)
        if isinstance(root, ast.Attribute):
            return (_Origin(max(reach, Reach.SHARED), None),)
        return ()

    # ---- order

    def _reaching(self, name: str, at: ast.AST) -> list[_Binding]:
        """The bindings whose tensor a name may hold at a node."""
        own = [
            b for b in self._bindings if b.name == name and not isinstance(b.statement, ast.Call)
        ]
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

    def _is_live(self, name: str, since: ast.AST, write: ast.AST) -> bool:
        """Whether what a name held at a binding is read behind a write."""
        if "." in name:
            return True
        for node in self._nodes:
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
