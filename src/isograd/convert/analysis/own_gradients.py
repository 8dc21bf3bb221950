"""Functions with a gradient of their own that can be written as a cell with `bprop`.

A cell's `bprop(self, *inputs, out, slope)` has no context: what `backward` reads of torch's must be
the inputs, the output, numbers, or tensors that forward has under a name, which the cell returns
behind its result.  Anything else keeps torch's form, which no static graph runs.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from isograd.convert.analysis.shown_tensors import tensors_of
from isograd.convert.tree import is_none
from isograd.scan.names_in_place import changes_in_place

#: torch's class, by its names.
FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
#: What holds the saved tensors, by its names.
_SAVED = ("saved_tensors", "saved_variables")
_OUT = "out"
_SLOPES = "dout"


@dataclass(frozen=True)
class OwnGradient:
    """A class with `forward(ctx, *inputs)` and `backward(ctx, *slopes)`.

    gone: statements that only keep or fetch what the context holds.  read: what backward reads of
    the context, and what it is in `bprop`.  none_names: names of backward that are None.  carried:
    what forward returns behind its result.
    """

    node: ast.ClassDef
    forward: ast.FunctionDef
    backward: ast.FunctionDef
    inputs: tuple[str, ...]
    gone: tuple[ast.stmt, ...]
    read: tuple[tuple[ast.expr, str], ...]
    none_names: frozenset[str]
    carried: tuple[str, ...]

    @property
    def slopes(self) -> list[ast.arg]:
        """What backward gets: the gradient of each output."""
        return self.backward.args.args[1:]


class _TorchFormError(Exception):
    """The class keeps torch's form."""


def own_gradient(node: ast.ClassDef, tree: ast.Module) -> OwnGradient | None:
    """What a class computes, if a cell can; None if not.

    tree: the file, which must not ask more of the class than `apply`.
    """
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    is_plain = not node.decorator_list and not node.keywords and len(node.bases) == 1
    if forward is None or backward is None or not is_plain or "setup_context" in methods:
        return None
    if "apply" in methods or _asks_more(node.name, tree):
        return None
    try:
        return _read(node, forward, backward, tree)
    except _TorchFormError:
        return None


def _read(
    node: ast.ClassDef, forward: ast.FunctionDef, backward: ast.FunctionDef, tree: ast.Module
) -> OwnGradient:
    (context, *inputs), (other, *slopes) = map(_arguments, (forward, backward))
    if not inputs or not slopes or {_OUT, _SLOPES} & {*inputs} or {*inputs} & {*slopes}:
        raise _TorchFormError
    known = () if _may_write(forward, context, tree) else inputs
    carried = _Carried(forward, len(slopes), tree)
    kept = _Kept(forward, context, tuple(known), carried)
    gone = list(kept.statements)
    unchanged: set[str] = set()  # inputs that the context gives back under their names
    for statement, targets, meant in _fetches(backward, other, kept):
        if targets == meant:
            gone.append(statement)
        pairs = zip(targets, meant, strict=False)  # of another length it raises, as in torch
        unchanged |= {name for name, given in pairs if name == given}
    inside = {id(part) for statement in gone for part in ast.walk(statement)}
    rest = [part for part in _within(backward) if id(part) not in inside]
    own = set(slopes) | {
        part.id
        for part in rest
        if isinstance(part, ast.Name)
        and _is_bound(part)
        and (part.id not in unchanged or _times_bound(backward, part.id) > 1)
    }
    if own & {*inputs, _OUT, _SLOPES}:
        raise _TorchFormError
    _look_at_returned(backward, len(inputs))
    read = tuple(_reads(rest, other, kept, backward))
    none = _none_names(backward)
    names = tuple(carried.names)
    return OwnGradient(node, forward, backward, tuple(inputs), tuple(gone), read, none, names)


def _reads(
    parts: list[ast.AST], context: str, kept: _Kept, backward: ast.FunctionDef
) -> Iterator[tuple[ast.expr, str]]:
    """The expressions that read the context, with what they are in `bprop`."""
    for part in parts:
        if isinstance(part, ast.Name) and part.id == context and not _is_member(part, backward):
            raise _TorchFormError
        found = _of_context(part, context, kept, backward)
        if found and isinstance(part, ast.expr):
            yield part, found


def _none_names(backward: ast.FunctionDef) -> frozenset[str]:
    """Names that are bound to None and to nothing else."""
    found: set[str] = set()
    for part in _within(backward):
        if isinstance(part, ast.Assign) and is_none(part.value):
            found |= {getattr(target, "id", "") for target in part.targets}
    if any(_times_bound(backward, name) != 1 for name in found):
        raise _TorchFormError  # no graph takes None for the gradient of a tensor
    return frozenset(found)


def _look_at_returned(backward: ast.FunctionDef, count: int) -> None:
    """Each return gives a gradient for each input."""
    for value in _returned(backward):
        is_one_for_each = isinstance(value, ast.Tuple) and len(value.elts) == count
        if not is_one_for_each and (count > 1 or isinstance(value, ast.Tuple)):
            raise _TorchFormError


def _may_write(function: ast.FunctionDef, context: str, tree: ast.AST) -> bool:
    """Whether a function, or what it calls, may write into a tensor that is there already.

    Which one is not asked: another name may mean an input.
    """
    own = {part.name: part for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)}
    for part in _within(function):
        if _writes(part) and not _member(part, context):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            called = own.get(part.func.id)
            if called is None and not hasattr(builtins, part.func.id):
                return True
            if called is not None and any(map(_writes, ast.walk(called))):
                return True
    return False


def _writes(part: ast.AST) -> bool:
    """`x.add_(…)`, `x[…] = …`, `x += …`, `out=x`; torch's names of functions in place end so."""
    if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
        return True
    if isinstance(part, ast.keyword):
        is_off = isinstance(part.value, ast.Constant) and not part.value.value
        return part.arg in ("out", "inplace") and not is_off
    is_method = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    name: str = part.func.attr if is_method else ""  # type: ignore[attr-defined]
    return isinstance(part, ast.AugAssign) or changes_in_place(name)


class _Kept:
    """What forward keeps in the context: `saved` tensors and `members`, as `bprop` has them.

    inputs: those that forward leaves as they are; none where it may write into tensors.
    """

    def __init__(
        self,
        forward: ast.FunctionDef,
        context: str,
        inputs: tuple[str, ...],
        carried: _Carried,
    ) -> None:
        self._carried = carried if inputs else None
        self.saved: tuple[str, ...] = ()
        self.members: dict[str, str] = {}
        self.statements: list[ast.stmt] = []
        bound = {part.id for part in _within(forward) if _is_bound(part)}
        self._known = {name: name for name in inputs if name not in bound}
        returned = list(_returned(forward))
        result = returned[0] if inputs and len(returned) == 1 else None
        if isinstance(result, ast.Name) and _times_bound(forward, result.id) == 1:
            self._known[result.id] = _OUT
        for statement in forward.body:
            self._read(statement, context)
        if carried.names:
            self._take_first()
        inside = {id(part) for statement in self.statements for part in ast.walk(statement)}
        if any(
            isinstance(part, ast.Name) and part.id == context and id(part) not in inside
            for part in _within(forward)
        ):
            raise _TorchFormError

    def _take_first(self) -> None:
        """Mean by the output the first of several."""
        first = f"{_OUT}[0]"
        self.saved = tuple(first if one == _OUT else one for one in self.saved)
        self.members = {
            name: re.sub(rf"^{_OUT}(?=$|\.)", first, one) for name, one in self.members.items()
        }

    def _read(self, statement: ast.stmt, context: str) -> None:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and _member(call.func, context) == "save_for_backward":
            if self.saved or call.keywords:
                raise _TorchFormError
            self.saved = tuple(self._meant(value) for value in call.args)
            self.statements.append(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name = _member(statement.targets[0], context)
            if name:
                if name in self.members:
                    raise _TorchFormError
                self.members[name] = self._meant(statement.value)
                self.statements.append(statement)

    def _meant(self, value: ast.expr) -> str:
        """How `bprop` writes a kept value: an input, its shape, the output, or a number."""
        if isinstance(value, ast.Constant):
            return ast.unparse(value)
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            return f"{self._meant(value.value)}.shape"
        found = self._known.get(value.id) if isinstance(value, ast.Name) else None
        if found is None and isinstance(value, ast.Name) and self._carried is not None:
            found = self._carried.take(value.id)
        if found is None:
            raise _TorchFormError
        return found


class _Carried:
    """Tensors that forward has under names of its own, and returns behind its result."""

    def __init__(self, forward: ast.FunctionDef, count: int, tree: ast.Module) -> None:
        self.names: list[str] = []
        self._forward, self._count, self._tree = forward, count, tree

    def take(self, name: str) -> str | None:
        """What a name of forward's is in `bprop`; None where it may be no tensor or another one."""
        *_, last = self._forward.body
        if not isinstance(last, ast.Return) or [*_returned(self._forward)] != [last.value]:
            return None
        result = len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1
        if result != self._count or name not in tensors_of(self._forward, self._tree):
            return None
        if name not in self.names:
            self.names.append(name)
        return f"{_OUT}[{result + self.names.index(name)}]"


def _arguments(function: ast.FunctionDef) -> list[str]:
    """The names of plain arguments of a static method, the context's first."""
    given = function.args
    decorators = [getattr(decorator, "id", "") for decorator in function.decorator_list]
    is_plain = not (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs)
    if decorators != ["staticmethod"] or not is_plain or given.defaults or not given.args:
        raise _TorchFormError
    return [argument.arg for argument in given.args]


def _within(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        for part in ast.walk(statement):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Yield)):
                raise _TorchFormError
            yield part


def _is_bound(part: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)


def _times_bound(function: ast.FunctionDef, name: str) -> int:
    return sum(_is_bound(part) and part.id == name for part in _within(function))


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function returns; it must say so."""
    for part in _within(function):
        if isinstance(part, ast.Return):
            if part.value is None:
                raise _TorchFormError
            yield part.value


def _member(node: ast.AST, context: str) -> str:
    """`save_for_backward` of `ctx.save_for_backward`; empty for anything else."""
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == context:
        return node.attr
    return ""


def _is_member(name: ast.Name, function: ast.FunctionDef) -> bool:
    """Whether a context's name is read for one of its members."""
    return any(isinstance(part, ast.Attribute) and part.value is name for part in _within(function))


def _fetches(
    backward: ast.FunctionDef, context: str, kept: _Kept
) -> Iterator[tuple[ast.stmt, tuple[str, ...], tuple[str, ...]]]:
    """Statements that bind what the context holds: the names, and what each is in `bprop`."""
    for statement in backward.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        name = getattr(target, "id", "")
        member, index = _member(value, context), _index_of_saved(value, context)
        if member in _SAVED and isinstance(target, (ast.Tuple, ast.List)):
            yield statement, tuple(getattr(part, "id", "") for part in target.elts), kept.saved
        elif member in kept.members:
            yield statement, (name,), (kept.members[member],)
        elif index is not None and index < len(kept.saved):
            yield statement, (name,), (kept.saved[index],)


def _index_of_saved(node: ast.AST, context: str) -> int | None:
    """0 of `ctx.saved_tensors[0]`."""
    if not isinstance(node, ast.Subscript) or _member(node.value, context) not in _SAVED:
        return None
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return index if isinstance(index, int) else None


def _of_context(part: ast.AST, context: str, kept: _Kept, backward: ast.FunctionDef) -> str:
    """What a node that reads the context is in `bprop`; empty where it does not."""
    index = _index_of_saved(part, context)
    if index is not None:
        if not 0 <= index < len(kept.saved):
            raise _TorchFormError
        return kept.saved[index]
    name = _member(part, context)
    if not name:
        return ""
    if not isinstance(getattr(part, "ctx", None), ast.Load):
        raise _TorchFormError
    if name in _SAVED:
        is_indexed = any(
            _index_of_saved(other, context) is not None and getattr(other, "value", None) is part
            for other in _within(backward)
        )
        if not kept.saved:
            raise _TorchFormError
        if is_indexed:
            return ""
        return f"({', '.join(kept.saved)}{',' if len(kept.saved) == 1 else ''})"
    if name not in kept.members:
        raise _TorchFormError
    return kept.members[name]


def _asks_more(name: str, tree: ast.AST) -> bool:
    """Whether a file uses a class otherwise than by `apply`."""
    applied = {
        id(part.value)
        for part in ast.walk(tree)
        if isinstance(part, ast.Attribute) and part.attr == "apply"
    }
    return any(
        isinstance(part, ast.Name) and part.id == name and id(part) not in applied
        for part in ast.walk(tree)
    )
