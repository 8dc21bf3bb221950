"""Whether a value may hold a graph: whether anything that it is computed of goes back to what
learns.

A step differentiates with respect to the parameters that its own forward part reaches.  What comes
in from outside is a constant for it, whatever it was computed of.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from isograd.convert.file import FileEdit
from isograd.convert.names import is_third_party, is_torch
from isograd.convert.training.callers import Callers
from isograd.convert.training.freedom import CONTAINERS, TENSORS
from isograd.convert.training.index import Index, last_name
from isograd.convert.training.paths import root_of
from isograd.convert.training.reaching_values import (
    SCOPES,
    ReachingValues,
    import_of,
    own_nodes,
    parameters_of,
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods and attributes whose values have no gradient.
_ENDS = frozenset(
    "detach item tolist numpy size dim numel argmax argmin long int bool shape dtype device ndim "
    "data grad requires_grad eq ne gt lt ge le state_dict".split()
)
_UNRECORDED = ("no_grad", "inference_mode")
#: Calls that return data, whatever else their package holds.
_DATA = ("torch.utils.data", "torchvision.datasets", "torchvision.transforms", "torch.load")
_METHODS = CONTAINERS | TENSORS | {m for kind in (str, list, dict, set) for m in dir(kind)}
#: Functions of Python's that return numbers and the like.
_PLAIN = frozenset("len int float bool str range isinstance print id hash type".split())
_GENERATED = ("__iter__", "__next__", "__getitem__", "__call__")
_PARAMETERS = frozenset("weight bias".split())


@dataclass(frozen=True)
class Source:
    """Where a graph may come from.

    is_known: whether it surely does.  given: what a call gives to the function that was asked for.
    """

    node: ast.expr
    is_known: bool
    given: ast.expr | None


@dataclass(frozen=True)
class _Part:
    """A value that is looked at.

    is_called: it is called, or a method of it is.  inside: the function whose result it belongs to,
    of which the arguments are looked at where it is called.  given: as in `Source`.
    """

    node: ast.expr
    is_called: bool = False
    inside: ast.AST | None = None
    given: ast.expr | None = None

    def next(self, node: ast.expr, *, is_called: bool = False) -> _Part:
        """Another part of the same function."""
        return _Part(node, is_called, self.inside, self.given)

    def elsewhere(self, node: ast.expr) -> _Part:
        """A part of any other function."""
        return _Part(node, self.is_called, None, self.given)


@dataclass
class Graphs:
    """Asks of one project.  reading: what is known of a file, by its name."""

    index: Index
    callers: Callers
    reading: Callable[[str], FileEdit | None]
    _files: dict[str, FileEdit | None] = field(default_factory=dict)
    _round: ast.AST | None = None
    _inside: Collection[ast.AST] = ()

    def __post_init__(self) -> None:
        self._bound = ReachingValues(self.index)

    def source(
        self, node: ast.expr, around: ast.AST, inside: Collection[ast.AST] = ()
    ) -> Source | None:
        """The first that is found of what a value may owe its graph to; None where it has none.

        around: the function that takes the value; what its calls give has to be known.  inside: the
        statements of the step, which bind nothing that goes into it.
        """
        self._round, self._inside = around, inside
        waiting: list[_Part] = [_Part(node)]
        seen: set[_Part] = set()
        unknown: Source | None = None
        while waiting:
            part = waiting.pop()
            if part in seen:
                continue
            seen.add(part)
            for found in self._behind(part):
                if isinstance(found, _Part):
                    waiting.append(found)
                elif found.is_known:
                    return found
                else:
                    unknown = found if unknown is None or found.given else unknown
        return unknown

    def wrapper(self, node: ast.expr) -> tuple[ast.expr, str] | None:
        """What makes an object that steps and is no optimizer, and its class; None for any other.

        node: what has a method `step`.
        """
        waiting, seen = [_Part(node, is_called=True)], set[_Part]()
        while waiting:
            part = waiting.pop()
            if part in seen or not part.is_called:
                continue
            seen.add(part)
            made = part.node
            if isinstance(made, ast.Call) and name_of(made) in self.index.classes:
                for own in self.index.classes[name_of(made)]:
                    has_step = any(getattr(one, "name", "") == "step" for one in own.body)
                    if has_step and not self._derives(own, "torch.optim."):
                        return made, own.name
            waiting += [one for one in self._behind(part) if isinstance(one, _Part)]
        return None

    def _file(self, node: ast.AST) -> FileEdit | None:
        name = self.index.file(node)
        if name not in self._files:
            self._files[name] = self.reading(name)
        return self._files[name]

    def _behind(self, part: _Part) -> Iterator[_Part | Source]:
        """What a value is computed of."""
        node = part.node
        if self._is_unrecorded(node):
            return
        if isinstance(node, ast.Name):
            yield from self._of_name(node, part)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(node, part)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, part)
        elif isinstance(node, (ast.Compare, ast.Lambda, ast.JoinedStr, ast.Constant)):
            return
        elif isinstance(node, ast.IfExp):
            yield from (part.next(node.body), part.next(node.orelse))
        elif isinstance(node, ast.Subscript):
            yield part.next(node.value, is_called=part.is_called)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield part.next(node.elt)
        else:
            yield from (part.next(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))

    def _unknown(self, node: ast.expr, part: _Part) -> Source:
        return Source(node, is_known=False, given=part.given)

    def _is_unrecorded(self, node: ast.AST) -> bool:
        """Whether it is computed where nothing is recorded."""
        for above in self.index.above(node):
            if isinstance(above, ast.With):
                if any(name_of(item.context_expr) in _UNRECORDED for item in above.items):
                    return True
            if isinstance(above, _Function):
                return any(name_of(one) in _UNRECORDED for one in above.decorator_list)
        return False

    # ---- names

    def _of_name(self, node: ast.Name, part: _Part) -> Iterator[_Part | Source]:
        """What the scopes around bind to a name, of the innermost that does."""
        for scope in (s for s in self.index.above(node) if isinstance(s, SCOPES)):
            is_own = scope is self._bound.scope(node)
            values = [value for _, value in self._bound.bindings(node.id, scope)]
            is_given = node.id in parameters_of(scope)
            if is_own:
                values, is_open = self._bound.reaching(node, scope, self._inside)
                is_given = is_given and is_open
            yield from (part.next(value, is_called=part.is_called) for value in values)
            if is_given:
                yield from self._of_parameter(node, scope, part)
            if values or is_given:
                return
        *_, module = self.index.above(node)
        yield from self._of_global(node, module, part)

    def _of_parameter(
        self, node: ast.Name, scope: ast.AST, part: _Part
    ) -> Iterator[_Part | Source]:
        """What the calls of a function give; a method's own object says nothing."""
        is_elsewhere = scope is part.inside and not part.is_called
        if is_elsewhere or not isinstance(scope, _Function):
            return
        own = self.index.owner(scope)
        if own is not None and [*parameters_of(scope)][:1] == [node.id]:
            if part.is_called and own.bases:
                yield self._unknown(node, part)
            return
        calls = self.callers.calls(scope)
        if not calls and part.is_called:
            yield self._unknown(node, part)
        for call in calls:
            if self._is_unrecorded(call):
                continue
            for value in self.callers.given(call, scope, node.id):
                yield _Part(
                    value,
                    part.is_called,
                    None,
                    part.given or (value if scope is self._round else None),
                )

    def _of_global(self, node: ast.Name, module: ast.AST, part: _Part) -> Iterator[_Part | Source]:
        """A name that is imported, or a function, or a class, or Python's own."""
        if node.id in self.index.functions or node.id in self.index.classes:
            return
        found = import_of(node.id, module)
        if found is None:
            if not hasattr(builtins, node.id):
                yield self._unknown(node, part)
            return
        package, name = found
        modules = [m for m in self.index.files if m is not module]
        values = (
            [value for m in modules for _, value in self._bound.bindings(name, m)] if name else []
        )
        if values:
            yield from map(part.elsewhere, values)
        elif part.is_called and not self._is_without_torch(package):
            yield self._unknown(node, part)

    def _is_without_torch(self, package: str) -> bool:
        """Whether a package knows no tensors with gradients."""
        root = package.partition(".")[0]
        own = {part for file in self.index.files.values() for part in PurePath(file).parts}
        is_own = not root or root in own or f"{root}.py" in own
        return not (is_own or is_torch(root) or is_third_party(package))

    def _of_attribute(self, node: ast.Attribute, part: _Part) -> Iterator[_Part | Source]:
        if node.attr in _ENDS:
            return
        file = self._file(node)
        use = None if file is None else file.use(node)
        if use is not None and use.api.startswith("torch.") and not use.is_member:
            return
        if not part.is_called and node.attr in self.index.parameters | _PARAMETERS:
            yield Source(node, is_known=node.attr in self.index.parameters, given=part.given)
            return
        values = self.index.of_attributes.get(node.attr, [])
        puts = [value for one, value in self.index.puts.get(node.attr, ()) if _is_attribute(one)]
        if values or puts:
            yield from map(part.elsewhere, (*values, *puts))
        else:
            yield part.next(node.value, is_called=part.is_called)

    # ---- calls

    def _of_call(self, node: ast.Call, part: _Part) -> Iterator[_Part | Source]:
        """What the value of a call is computed of."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _ENDS:
            return
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        file = self._file(node)
        use = None if file is None else file.use(function)
        api = "" if use is None else use.api
        if api.startswith(("torch.nn.Parameter", "torch.nn.parameter")):
            yield Source(node, is_known=True, given=part.given)
            return
        if api.startswith("torch.nn.") and api.rpartition(".")[2][:1].isupper():
            if part.is_called:
                yield Source(node, is_known=True, given=part.given)
            return
        if api.startswith(_DATA) or (name_of(node) in _PLAIN and api == ""):
            return
        yield from map(part.next, given)
        if api.startswith("torch.Tensor.") and isinstance(function, ast.Attribute):
            if not self.index.functions.get(function.attr):
                yield part.next(function.value)
                return
        if api.startswith("torch.") and use is not None and not use.is_member:
            return
        yield from self._of_own(node, part)

    def _of_own(self, node: ast.Call, part: _Part) -> Iterator[_Part | Source]:
        """A call of what is no API of torch's."""
        function, name = node.func, name_of(node)
        root = root_of(function)
        if isinstance(function, ast.Name) and self._is_definition(function):
            for own in self.index.classes.get(name, ()):
                yield from self._of_class(own, node, part)
            for called in self.index.functions.get(name, ()):
                yield from _results(called, part)
            return
        if isinstance(function, ast.Name) and hasattr(builtins, name):
            if not self._is_bound(function):
                return
        methods = [f for f in self.index.functions.get(name, ()) if self.index.owner(f)]
        if isinstance(function, ast.Attribute) and methods:
            for called in methods:
                yield from _results(called, part)
            if name in _METHODS:
                yield part.next(function.value)
            return
        if isinstance(function, ast.Attribute) and name in _METHODS:
            yield part.next(function.value)
            return
        if root is None:
            yield self._unknown(node, part)
            return
        yield part.next(function, is_called=True)

    def _is_definition(self, name: ast.Name) -> bool:
        is_known = name.id in self.index.functions or name.id in self.index.classes
        return is_known and not self._is_bound(name)

    def _is_bound(self, name: ast.Name) -> bool:
        """Whether an assignment or a parameter around a name binds it."""
        return any(
            isinstance(scope, SCOPES)
            and (name.id in parameters_of(scope) or any(self._bound.bindings(name.id, scope)))
            for scope in self.index.above(name)
        )

    def _of_class(self, own: ast.ClassDef, node: ast.Call, part: _Part) -> Iterator[_Part | Source]:
        """An object: a call of a module is known to learn; any other may be gone through."""
        if self._derives(own, "torch.nn."):
            if part.is_called:
                yield Source(node, is_known=True, given=part.given)
            return
        for function in own.body:
            if isinstance(function, _Function) and function.name in _GENERATED:
                yield from _results(function, part)

    def _derives(self, own: ast.ClassDef, api: str, seen: tuple[str, ...] = ()) -> bool:
        """Whether a class is derived from one of torch's, whose name begins so."""
        file = self._file(own)
        for base in own.bases:
            use = None if file is None else file.use(base)
            if use is not None and use.api.startswith(api):
                return True
            name = name_of(base)
            if name not in seen and any(
                self._derives(one, api, (*seen, name)) for one in self.index.classes.get(name, ())
            ):
                return True
        return False


def _results(function: _Function, part: _Part) -> Iterator[_Part]:
    """What a function returns and yields."""
    if any(name_of(one) in _UNRECORDED for one in function.decorator_list):
        return
    for node in own_nodes(function):
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
            yield _Part(node.value, part.is_called, function, part.given)


def name_of(node: ast.AST) -> str:
    """The last name of what is called, or of a path."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def _is_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute)
