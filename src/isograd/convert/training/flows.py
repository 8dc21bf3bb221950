"""Whether what a compiled step has computed may come to other statements with its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from isograd.convert.training.callers import Callers
from isograd.convert.training.index import Index, last_name
from isograd.convert.training.model import StepPlan
from isograd.convert.training.paths import bound_by, read_before_bound

#: Methods and attributes whose values have no graph.
_ENDS = frozenset("detach item tolist numpy argmax argmin data size shape dim eq ne".split())
_PLAIN = frozenset("float int print len str format isinstance".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: A name by the function or module that binds it; an attribute by no scope; a function's value by
#: the function.
_Held = tuple[ast.AST | None, str]


def flows_into(
    plans: Iterable[StepPlan], regions: Iterable[_Function | ast.Module], index: Index
) -> Iterator[ast.expr]:
    """The reads in these statements that may be of steps' results.

    Attributes are known by their names, whatever they belong to, and methods, too.
    """
    flows = _Flows(index, Callers(index))
    for plan in plans:
        flows.add(plan)
    for region in regions:
        is_function = isinstance(region, _FUNCTIONS)
        first = set() if is_function else read_before_bound(region.body, set())
        for node in ast.walk(region):
            if isinstance(node, ast.expr) and flows.is_held(node):
                if is_function or getattr(node, "id", "") in {"", *first}:
                    yield node


@dataclass
class _Flows:
    """What may hold results of steps; own: the nodes of the forward parts."""

    index: Index
    callers: Callers
    held: set[_Held] = field(default_factory=set)
    own: set[ast.AST] = field(default_factory=set)
    _bound: dict[ast.AST, set[str]] = field(default_factory=dict)

    def add(self, plan: StepPlan) -> None:
        """The results of a step, and all that may take their values."""
        scope = next(p for p in (plan.loop, *self.index.above(plan.loop)) if _is_scope(p))
        names = set(plan.outputs) | {last_name(plan.loss)}
        if isinstance(scope, ast.Module):  # functions read them, too
            names = names.union(*map(bound_by, plan.computed))
        self.own |= {node for part in plan.computed for node in ast.walk(part)}
        waiting: list[_Held] = [(scope, name) for name in names]
        while waiting:
            one = waiting.pop()
            if one not in self.held:
                self.held.add(one)
                for node in self._reads(one):
                    waiting += self._holders(node)

    def is_held(self, node: ast.expr) -> bool:
        """Whether an expression reads a result of a step with its graph."""
        if node in self.own or self._ends(node):
            return False
        if isinstance(node, ast.Call):
            functions = self.index.functions.get(last_name(node.func), ())
            return any((function, "()") in self.held for function in functions)
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            return False
        key = self._key(node)
        return key is not None and key in self.held

    def _reads(self, held: _Held) -> Iterator[ast.expr]:
        scope, name = held
        if isinstance(scope, _FUNCTIONS) and name == "()":
            yield from self.index.calls.get(scope.name, ())
            return
        for node in self.index.reads.get(name, ()):
            if node not in self.own and self._key(node) == held and not self._ends(node):
                yield node

    def _key(self, node: ast.AST) -> _Held | None:
        """What a target or a read names."""
        if isinstance(node, ast.Attribute):
            return None, node.attr
        if not isinstance(node, ast.Name):
            return None
        above = list(self.index.above(node))
        for part in above:
            if isinstance(part, _FUNCTIONS) and node.id in self._bound_in(part):
                return part, node.id
        return above[-1], node.id

    def _bound_in(self, function: _Function) -> set[str]:
        if function not in self._bound:
            arguments = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
            self._bound[function] = arguments | bound_by(function)
        return self._bound[function]

    def _holders(self, node: ast.expr) -> Iterator[_Held]:
        """What takes the value of the expression in which a read stands, if it keeps its graph."""
        part: ast.AST = node
        while part in self.index.parents:
            parent = self.index.parents[part]
            if isinstance(parent, ast.Call) and part is not parent.func:
                yield from self._parameters(parent, part)
                receiver = getattr(parent.func, "value", None)
                if receiver is not None and isinstance(self.index.parents.get(parent), ast.Expr):
                    yield from self._filled(receiver)  # `losses.append(loss)`
            if isinstance(parent, ast.Return):
                function = self.index.function(parent)
                yield from () if function is None else ((function, "()"),)
            if isinstance(parent, (ast.For, ast.AsyncFor)) and part is parent.iter:
                yield from self._targets(parent.target)
            if isinstance(parent, ast.stmt):
                for target in _assigned(parent):
                    yield from self._targets(target)
                return
            if isinstance(parent, ast.NamedExpr):
                yield from self._targets(parent.target)
            if isinstance(parent, ast.expr) and self._ends(parent):
                return
            part = parent

    def _targets(self, target: ast.expr) -> Iterator[_Held]:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                yield from self._targets(part)
        elif isinstance(target, ast.Subscript):
            yield from self._filled(target.value)
        elif isinstance(target, ast.Starred):
            yield from self._targets(target.value)
        elif (key := self._key(target)) is not None:
            yield key

    def _filled(self, container: ast.expr) -> Iterator[_Held]:
        """A container that a value is put into; one that a function is given is its caller's."""
        while isinstance(container, ast.Subscript):
            container = container.value
        key = self._key(container)
        if key is None:
            return
        yield key
        function, name = key
        if isinstance(function, _FUNCTIONS) and name in {n.arg for n in function.args.args}:
            for call in self.callers.calls(function):
                for given in self.callers.given(call, function, name):
                    if (key := self._key(given)) is not None:
                        yield key

    def _parameters(self, call: ast.Call, part: ast.AST) -> Iterator[_Held]:
        """The parameters of the project's functions that may be given a value."""
        for function in self.index.called(call):
            every = self.callers.parameters(function)
            if isinstance(part, ast.keyword) and part.arg is not None:
                yield function, part.arg
            elif part in call.args and not any(isinstance(a, ast.Starred) for a in call.args):
                at = call.args.index(part)
                yield from ((function, name) for name in every[at : at + 1])
            else:
                yield from ((function, name) for name in every)

    def _ends(self, node: ast.AST) -> bool:
        """Whether what is read of a value has no graph: `x.item()`, `float(x)`, `x > 1`."""
        parent = self.index.parents.get(node)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _ENDS
        if isinstance(parent, ast.Call) and node in parent.args:
            return getattr(parent.func, "id", "") in _PLAIN
        return isinstance(parent, (ast.Compare, ast.FormattedValue))


def _assigned(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        return [statement.target]
    return []


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, (*_FUNCTIONS, ast.Module))
