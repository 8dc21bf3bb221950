"""Operands of a chain that share memory with what it changes: `x.add_(1).sub_(y)` behind `y = x`.

torch reads them after the first change.  Values of which nothing else is known are taken for
tensors of their own: what torch computes, and two arguments that no call of the file makes one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from isograd.convert.aliases import Scope
from isograd.convert.analysis.given_arguments import Function, calls_of
from isograd.convert.bindings import alternatives, parted
from isograd.convert.data_aliases import is_data, owner_of
from isograd.convert.file import FileEdit
from isograd.convert.indexes import are_apart
from isograd.convert.origins import Binding, Reach, origin_of_write, view_of
from isograd.convert.passes.reach_of_writes import LOST, LOST_ADVICE, scope_of, sight_of
from isograd.convert.tree import names_of, pairs_of

#: What is asked of a tensor without its values.
_FORM = frozenset(
    "shape size dim ndim numel dtype device is_floating_point is_complex requires_grad".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor)


@dataclass(frozen=True)
class Root:
    """Memory that an expression may be of.

    key: a binding of a name, or the text of an attribute. part: which of what one statement
    unpacks. reach: how a name on the way was bound to it.
    """

    key: str
    part: tuple[str, str] = ("", "")
    reach: Reach = Reach.ALONE
    function: Function | None = None  # whose argument it is
    name: str = ""

    def is_of(self, other: Root) -> bool:
        """Whether two may be the same memory; parts of one that is unpacked are not."""
        is_apart = self.part[0] == other.part[0] != "" and self.part != other.part
        return self.key == other.key and not is_apart


def sees_change(target: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether a later call of a chain reads what a call changes, where the change is written.

    What cannot see the change in a port is reported.
    """
    found = _shared_operand(target, node, file)
    if found is None:
        return False
    operand, is_reached = found
    if isinstance(target, ast.Name) and sight_of(target.id, node, file).reach is Reach.ALONE:
        is_reached = False
    if not is_reached:
        message = LOST.format(ast.unparse(target), ast.unparse(operand))
        file.finding(node, "in-place-view", message, LOST_ADVICE)
    return is_reached


def _shared_operand(
    target: ast.expr, node: ast.Call, file: FileEdit
) -> tuple[ast.expr, bool] | None:
    """What the later calls of a chain read of the memory that a call changes.

    With whether a write into the target reaches it in a port.
    """
    roots = _Roots(file)
    own = roots.of(target, node)
    for operand in _operands(node, file):
        for part in _read(operand, file):
            if isinstance(part, ast.Call):
                if _reads_inside(part, target, file):
                    return part, True
            elif not are_apart(target, part):
                both = list(roots.common(own, roots.of(part, part)))
                if both:
                    return part, any(map(_is_reached, both))
    return None


def tell_given_view(name: ast.Name, node: ast.AST, file: FileEdit) -> None:
    """Report a change of an argument that does not reach what a call of the file gives it of.

    That may be another argument, or what the caller reads behind the call.
    """
    scope = scope_of(node, file)
    if isinstance(scope.node, ast.Module) or not scope.parameters:
        return
    roots = _Roots(file)
    own = [root for root in roots.of(name, node) if root.function is scope.node]
    for root in own:
        _tell_callers(root, file)
    for other in scope.parameters if own else ():
        given = Root(f"{other}:{scope.node.lineno}", function=scope.node, name=other)
        is_own = any(root.name == other for root in own)  # of which `sight_of` says it
        if is_own or not scope.is_read_behind(other, node):
            continue
        both = list(roots.common(set(own), {given}))
        if both and not any(map(_is_reached, both)):
            message = LOST.format(name.id, other)
            file.finding(node, "in-place-view", message, LOST_ADVICE)


def _tell_callers(argument: Root, file: FileEdit) -> None:
    """Report calls that give a view to a function that changes it, and read its tensor behind."""
    assert argument.function is not None
    for call, given in calls_of(argument.function, file.tree):
        value = given.get(argument.name)
        if value is None or file.use(call.func) is not None:
            continue
        if is_data(value) and file.tree.is_statement(call):
            value = owner_of(value) or value  # which is what a port gives there
        scope, (root, reach) = scope_of(call, file), origin_of_write(value, file.views)
        seen = ""
        if isinstance(root, ast.Attribute) and reach is Reach.LOST:
            seen = ast.unparse(root)
        elif isinstance(root, ast.Name):
            sight = scope.sight(root.id, call)
            if reach is Reach.LOST and scope.is_read_behind(root.id, call):
                seen = root.id
            elif Reach.LOST in (reach, sight.reach) and sight.reach is not Reach.ALONE:
                seen = sight.name
        if seen:
            message = LOST.format(ast.unparse(value), seen)
            file.finding(call, "in-place-view", message, LOST_ADVICE)


def _is_reached(pair: tuple[Root, Root]) -> bool:
    """Whether a write by the one is seen by the other, which was bound before."""
    return pair[0].reach is not Reach.LOST and pair[1].reach < Reach.SLICE


def _operands(node: ast.Call, file: FileEdit) -> Iterator[ast.expr]:
    """The arguments of the later calls of a chain."""
    inner: ast.AST = node
    link: ast.AST = file.tree.parents[node]
    while isinstance(link, (ast.Attribute, ast.Call)):
        if isinstance(link, ast.Call):
            given = [*link.args, *(part.value for part in link.keywords)]
            yield from (part for part in given if part is not inner)
        inner, link = link, file.tree.parents[link]


def _read(node: ast.AST, file: FileEdit) -> Iterator[ast.expr]:
    """The longest paths whose values an expression reads, and its calls of the project's."""
    below: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.Name, ast.Attribute)):
        if node in file.named or getattr(node, "attr", "") in _FORM:
            return
        yield node
    elif isinstance(node, ast.Subscript):
        yield node
    elif isinstance(node, ast.Call):
        if file.use(node.func) is None:
            yield node
        below = [*node.args, *node.keywords]
        if isinstance(node.func, ast.Attribute) and node.func not in file.named:
            below += [node.func.value] * (node.func.attr not in _FORM)
    owner = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    for part in below:
        if part is not owner or not isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            yield from _read(part, file)


def _reads_inside(call: ast.Call, target: ast.expr, file: FileEdit) -> bool:
    """Whether a function of the file that is called reads what is changed itself."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    root: ast.AST = target
    while isinstance(root, ast.Subscript):
        root = root.value
    for function in file.tree.of(*_FUNCTIONS):
        if function.name != name:
            continue
        for part in file.tree.walked(function):
            if isinstance(root, ast.Attribute) and getattr(part, "attr", "") == root.attr:
                return True
            if isinstance(root, ast.Name) and getattr(part, "id", "") == root.id:
                scope = scope_of(part, file)
                if root.id not in scope.bound and root.id not in scope.parameters:
                    return True
    return False


def _text(node: ast.expr) -> str:
    """The text of what holds a tensor: `self.h`, `state["h"]`; empty for anything else."""
    is_key = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    if is_key and not isinstance(node.slice.value, str):  # type: ignore[attr-defined]
        return ""
    return ast.unparse(node) if is_key or isinstance(node, ast.Attribute) else ""


class _Roots:
    """What the expressions of a file are made of; attributes in any order."""

    def __init__(self, file: FileEdit) -> None:
        self._file = file

    def of(self, node: ast.expr, at: ast.AST, known: frozenset[str] = frozenset()) -> set[Root]:
        """The memory that an expression is of where it stands; known: bindings on the way."""
        return self._of(self._base(node)[0], at, known)

    def bound(self, node: ast.expr, at: ast.AST, known: frozenset[str] = frozenset()) -> set[Root]:
        """The memory that a name is of which an expression is bound to."""
        base, reach = self._base(node)
        found = self._of(base, at, known)
        return {replace(root, reach=max(root.reach, reach)) for root in found}

    def _base(self, node: ast.expr) -> tuple[ast.expr, Reach]:
        part, reach = node, Reach.ALONE
        while not (isinstance(part, ast.Subscript) and _text(part)):
            here = view_of(part, self._file.views)
            if here is None:
                break
            is_whole = part in self._file.data_aliases.values
            part, reach = here[0], max(reach, Reach.SHARED if is_whole else here[1])
        return part, reach

    def _of(self, node: ast.expr, at: ast.AST, known: frozenset[str]) -> set[Root]:
        if isinstance(node, ast.Name):
            return self._of_name(node.id, at, known)
        parts = alternatives(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = node.elts
        elif isinstance(node, ast.Call) and self._file.use(node.func) is None:
            return {Root(ast.unparse(node))}
        elif text := _text(node):
            parts = list(self._in_dictionaries(node))
            return {Root(text), *(root for part in parts for root in self.bound(part, at, known))}
        return {root for part in parts for root in self.bound(part, at, known)}

    def _in_dictionaries(self, node: ast.expr) -> Iterator[ast.expr]:
        """x of `kept["x"]` where a dictionary that is written out is bound to the name."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            for value in scope_of(node, self._file).values_of(node.value.id):
                if isinstance(value, ast.Dict):
                    for key, held in zip(value.keys, value.values, strict=True):
                        if key is not None and ast.dump(key) == ast.dump(node.slice):
                            yield held

    def _of_name(self, name: str, at: ast.AST, known: frozenset[str]) -> set[Root]:
        scope, is_outer = scope_of(at, self._file), False
        while name not in scope.bound and name not in scope.parameters:
            if isinstance(scope.node, ast.Module):
                return {Root(name)}
            scope, is_outer = scope_of(scope.node, self._file), True
        bindings = [] if is_outer else scope.reaching(name, at)
        found = set[Root]()
        if not bindings:
            bindings = scope.bindings_of(name)
            if name in scope.parameters:
                assert not isinstance(scope.node, ast.Module)
                key = f"{name}:{scope.node.lineno}"
                found.add(Root(key, function=scope.node, name=name))
        for binding in (*bindings, *(b for b in scope.bindings_of(name) if not b.is_of_name)):
            key = f"{name}:{binding.statement.lineno}"  # type: ignore[attr-defined]
            if key not in known:
                found.add(Root(key))
                found |= self._of_binding(binding, scope, known | {key})
        return found

    def _of_binding(self, binding: Binding, scope: Scope, known: frozenset[str]) -> set[Root]:
        """What a statement binds to a name, or puts into the list that it holds."""
        statement, name = binding.statement, binding.name
        if isinstance(statement, ast.Call):
            return self.bound(statement.args[-1], statement, known) if statement.args else set()
        is_unpacked, value = False, binding.value
        if isinstance(statement, _LOOPS):
            for target, source in parted(statement.target, statement.iter):
                if name in names_of(target):
                    is_unpacked, value = not isinstance(target, ast.Name), source
        elif value is None:
            value = getattr(statement, "value", None)
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            is_unpacked = not any(getattr(target, "id", "") == name for target in targets)
        if value is None:
            return set()
        found = self.bound(value, statement, known)
        is_part = is_unpacked or isinstance(statement, _LOOPS)
        if is_part and isinstance(value, ast.Name) and not scope.is_container(value.id):
            found = {replace(root, reach=max(root.reach, Reach.SLICE)) for root in found}
        if is_unpacked:
            place = f"{statement.lineno}"  # type: ignore[attr-defined]
            found = {replace(root, part=(place, name)) for root in found}
        return found

    def common(
        self, ones: set[Root], others: set[Root], known: frozenset[ast.Call] = frozenset()
    ) -> Iterator[tuple[Root, Root]]:
        """The pairs of roots that may be the same storage; known: calls on the way."""
        ones, others = self._with_held(ones), self._with_held(others)
        for one in ones:
            for other in others:
                if one.is_of(other):
                    yield one, other
                elif one.function is not None and one.function is other.function:
                    yield from self._given(one, other, known)

    def _given(
        self, one: Root, other: Root, known: frozenset[ast.Call]
    ) -> Iterator[tuple[Root, Root]]:
        """Two arguments of a function that a call of the file makes one."""
        assert one.function is not None
        for call, given in calls_of(one.function, self._file.tree):
            is_another = call in known or self._file.use(call.func) is not None
            if is_another or one.name not in given or other.name not in given:
                continue
            left, right = given[one.name], given[other.name]
            if not are_apart(left, right):
                roots = self.bound(left, call), self.bound(right, call)
                for pair in self.common(*roots, known | {call}):
                    reaches = zip(pair, (one, other), strict=True)
                    first, second = (replace(a, reach=max(a.reach, b.reach)) for a, b in reaches)
                    yield first, second

    def _with_held(self, roots: set[Root]) -> set[Root]:
        """With what attributes are set to in the file."""
        found, waiting = set(roots), list(roots)
        while waiting:
            root = waiting.pop()
            for value, at in self._held.get(root.key, ()):
                for further in self.bound(value, at):
                    joined = replace(further, reach=max(further.reach, root.reach))
                    if joined not in found:
                        found.add(joined)
                        waiting.append(joined)
        return found

    @cached_property
    def _held(self) -> dict[str, list[tuple[ast.expr, ast.Assign]]]:
        found: dict[str, list[tuple[ast.expr, ast.Assign]]] = {}
        for node in self._file.tree.of(ast.Assign):
            for target in node.targets:
                for one, value in pairs_of(target, node.value):
                    if text := _text(one):
                        found.setdefault(text, []).append((value, node))
        return found
