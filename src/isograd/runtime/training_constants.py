"""What the compiler takes for constants when it compiles a step, and a program may change later."""

from __future__ import annotations

import dis
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn  # noqa: TID253

from isograd.runtime.training_steps import GraphOptimizer

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()
#: Where Python's own modules and installed packages lie.
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
#: What every cell has.
_OF_CELLS = frozenset(vars(nn.Cell()))
#: Larger arrays and containers are compared by their identity.
_MOST_ELEMENTS = 65536
_MOST_PARTS = 4096


class Constants:
    """Values that the code of networks and losses reads, as they are now.

    Read are attributes by their names, names of modules and of functions around.  Parameters are
    inputs of the graph, and no constants, unless they are all ones or zeros: a product with ones is
    left out.
    """

    def __init__(self, parts: Any, steps: Any = ()) -> None:
        parts = [part for part in parts if not isinstance(part, GraphOptimizer)]
        cells = [
            own for part in parts for cell in cells_of(part) for _, own in cell.cells_and_names()
        ]
        others = [getattr(part, "__self__", part) for part in parts]
        others += [value for cell in cells for value in vars(cell).values()]
        others = [one for one in others if _is_of_program(one)]
        self.names, functions = read_by((*parts, *steps), cells, others)
        readers = [one for cell in cells for one in _of_cell(cell, self.names)]
        for function, own in functions.items():
            readers += _of_function(function, own, self.names)
        readers += [(type(one).__name__, partial(_same, one)) for one in others]
        found = [(name, read, read()) for name, read in readers]
        self.fixed = [one for one in found if _is_fixed(one[2])]
        held = [one for cell in cells for one in _held_by(cell, self.names)]
        open_ones = [
            (name, read, self._constant) for name, read, value in found if not _is_fixed(value)
        ]
        open_ones += [(name, read, _folded) for name, read in held]
        self.open = [(*one, one[2](one[1]())) for one in open_ones]

    def _constant(self, value: Any) -> Any:
        return constant_of(value, self.names, 3)

    def changed(self) -> str:
        """The name of the first value that is another one now; empty where there is none."""
        for name, read, value in self.fixed:
            now = read()
            if now is not value and (not _is_fixed(now) or self._is_other(now, value)):
                return str(name)
        return next((str(name) for name, read, form, was in self.open if form(read()) != was), "")

    def _is_other(self, now: Any, value: Any) -> bool:
        return bool(self._constant(now) != self._constant(value))

    def settle(self) -> None:
        """Forget what the step itself has changed: the graph assigns it."""
        self.fixed = [one for one in self.fixed if not self._is_other(one[1](), one[2])]
        self.open = [one for one in self.open if one[2](one[1]()) == one[3]]


def cells_of(part: Any) -> list[Any]:
    """A network itself, or the networks of the object whose method is given."""
    if isinstance(part, MethodType) and not isinstance(part.__self__, nn.Cell):
        return [value for value in vars(part.__self__).values() if isinstance(value, nn.Cell)]
    own = part.__self__ if isinstance(part, MethodType) else part
    return [own] if isinstance(own, nn.Cell) else []


def _same(value: Any) -> Any:
    return value


@cache
def _is_of_library(name: str) -> bool:
    """Whether a module is no program's: Python's, an installed package's or this one."""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    is_built_in = name.partition(".")[0] in sys.builtin_module_names
    return name == __name__ or is_built_in or file.startswith(_INSTALLED)


def _is_of_program(value: Any) -> bool:
    """Whether an object is of a class of the program's, and no network."""
    kind = type(value)
    is_other = isinstance(value, (nn.Cell, ms.Tensor, type, FunctionType, ModuleType))
    return not is_other and not _is_of_library(getattr(kind, "__module__", ""))


def _is_fixed(value: Any) -> bool:
    """Whether a value stays what it is: numbers, texts, and what libraries make."""
    is_open = isinstance(value, (list, tuple, dict, set, ms.Tensor, np.ndarray, type, ModuleType))
    return not is_open and _is_of_library(getattr(type(value), "__module__", ""))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def read_by(parts: Any, cells: Any, others: Any) -> tuple[set[str], dict[FunctionType, set[str]]]:
    """All names that are read, and each function's: those of the parts and what they call.

    others: objects of the program that are no cells.
    """
    methods: dict[str, list[Any]] = {}
    hidden: dict[str, list[Any]] = {}
    names: set[str] = set()
    found: dict[FunctionType, set[str]] = {}
    waiting = [*parts, *(type(cell).construct for cell in cells)]

    def add(owner: Any) -> None:
        """Add the functions of a class or module, of which those are looked at that are read."""
        seen: set[str] = set()
        for kind in (owner,) if isinstance(owner, ModuleType) else owner.__mro__:
            module = kind.__name__ if isinstance(kind, ModuleType) else kind.__module__
            for name, value in vars(kind).items() if not _is_of_library(module) else ():
                (hidden if name in seen else methods).setdefault(name, []).append(value)
                if name not in seen and (name in names or name == "__call__"):
                    waiting.append(value)
            seen.update(vars(kind))

    owners: dict[Any, None] = dict.fromkeys(type(one) for one in (*cells, *others))
    for owner in owners:
        add(owner)
    while waiting:
        function = _function_of(waiting.pop())
        if function is None or function in found:
            continue
        own = found[function] = _names_in(function)
        waiting += [one for name in own - names for one in methods.get(name, ())]
        waiting += [one for name in own if "super" in own for one in hidden.get(name, ())]
        names |= own
        for _, read in _around(function, own):
            value = read()
            waiting.append(value)
            owner = value if isinstance(value, ModuleType) else type(value)
            if owner not in owners and (owner is value or _is_of_program(value)):
                owners[owner] = None
                add(owner)
    return names, found


def _names_in(function: FunctionType) -> set[str]:
    """The names that a function reads, but for those of libraries (`ops.log`) and of tensors."""
    found: set[str] = set()
    for code in _codes(function.__code__):
        own = code.co_varnames[0] if code.co_argcount else ""
        owner: Any = None  # what an attribute is read of: a module, _MISSING for any other value
        for one in dis.get_instructions(code):
            if one.opname == "LOAD_GLOBAL":
                found.add(one.argval)
                owner = function.__globals__.get(one.argval)
            elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                is_module = isinstance(owner, ModuleType) and _is_of_library(owner.__name__)
                if not is_module and not (owner is _MISSING and hasattr(ms.Tensor, one.argval)):
                    found.add(one.argval)
                owner = getattr(owner, one.argval, None) if is_module else None
            elif one.opname != "EXTENDED_ARG":
                is_own = one.argval == own or one.opname in ("LOAD_DEREF", "LOAD_CLOSURE")
                owner = None if is_own else _MISSING
    return found


def _function_of(value: Any) -> FunctionType | None:
    """The function of a method, a property or what is compiled; None of anything else."""
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    value = getattr(value, "__wrapped__", value)
    return value if isinstance(value, FunctionType) else None


def _around(function: FunctionType, own: set[str]) -> Iterator[tuple[str, Any]]:
    """What a function reads of its module and of the functions around it, with what reads it.

    own: the names that it reads.

    A library's functions may be made of the program's: they have those around them.
    """
    for name in own if not _is_of_library(function.__module__) else ():
        if name in function.__globals__:
            yield name, partial(function.__globals__.get, name, _MISSING)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield name, partial(getattr, cell, "cell_contents", _MISSING)


def _of_function(
    function: FunctionType, own: set[str], names: set[str]
) -> Iterator[tuple[str, Any]]:
    """What a function of the program reads around it, but for functions and libraries."""
    for name, read in _around(function, own) if not _is_of_library(function.__module__) else ():
        value = read()
        if isinstance(value, ModuleType):
            if not _is_of_library(value.__name__):
                held = vars(value)
                yield from ((key, partial(held.get, key, _MISSING)) for key in names & {*held})
        elif not isinstance(value, FunctionType):
            yield name, read


def _of_cell(cell: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """The attributes of a cell that are read; values of tensors of the program's own cells."""
    own, is_of_library = vars(cell), _is_of_library(type(cell).__module__)
    for name in (names & {*own}) - _OF_CELLS:
        if not is_of_library or not isinstance(own[name], ms.Tensor):
            yield name, partial(own.get, name, _MISSING)
    for kind in type(cell).__mro__:
        for name in names & {*vars(kind)} if not _is_of_library(kind.__module__) else ():
            if not callable(vars(kind)[name]) and not hasattr(vars(kind)[name], "__get__"):
                yield name, partial(vars(kind).get, name, _MISSING)
                yield name, partial(own.get, name, _MISSING)


def _held_by(cell: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """What a cell of the program's own holds and does not learn."""
    if not _is_of_library(type(cell).__module__):
        for held in (cell._params, cell._buffers):
            for name in names & {*held}:
                if held[name] is not None and not getattr(held[name], "requires_grad", False):
                    yield name, partial(held.get, name)


def constant_of(value: Any, names: set[str], depth: int) -> Any:
    """A value in a form that can be compared, whatever happens to the value itself.

    names: the attributes of objects that count.  depth: so far into containers and objects.
    """
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, ms.Parameter):
        return id(value)
    if isinstance(value, (ms.Tensor, np.ndarray)):
        return id(value), _array_of(value).tobytes() if value.size <= _MOST_ELEMENTS else b""
    if depth == 0 or isinstance(value, (nn.Cell, FunctionType, ModuleType)):
        return id(value)
    if isinstance(value, (dict, list, tuple, set, frozenset)) and len(value) > _MOST_PARTS:
        return id(value), len(value)
    inner = partial(constant_of, names=names, depth=depth - 1)
    if isinstance(value, dict):
        return type(value), [(repr(key), inner(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [inner(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(map(repr, value))
    if _is_fixed(value):
        return id(value)
    own = getattr(value, "__dict__", {})
    read = [(key, inner(own[key])) for key in sorted(names & {*own})]
    kinds = type(value).__mro__ if not isinstance(value, type) else ()
    return id(value), read, [inner(kind) for kind in kinds if not _is_of_library(kind.__module__)]


def _array_of(value: Any) -> Any:
    """The values of a tensor or an array; numpy has no bfloat16."""
    if isinstance(value, ms.Tensor):
        return (value.astype(ms.float32) if value.dtype == ms.bfloat16 else value).asnumpy()
    return value


def _folded(value: Any) -> Any:
    """A tensor by its identity, and its values unless they are an input of the graph.

    A Parameter's are one, if the compiler does not leave them out.
    """
    if value is None or value.size > _MOST_ELEMENTS:
        return id(value), b""
    values = _array_of(value)
    is_input = isinstance(value, ms.Parameter) and not ((values == 0).all() or (values == 1).all())
    return id(value), b"" if is_input else values.tobytes()
