"""Which functions a replay calls in MindSpore, with their results.

PyNative has no function mode, so everything that a user's code can call is wrapped for the time of
a block: the functions of `mindspore.ops`, `mint` and `numpy`, also where the user's modules and
cells hold them by another name, the methods and operators of `Tensor`, primitives, and the cells of
the library.  Only the outermost of them are noted.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import mindspore as ms
from mindspore import mint, nn, ops

from isograd.frameworks.base import FunctionCall
from isograd.frameworks.common import users_line
from isograd.frameworks.mindspore.construction import CONTAINERS, is_library
from isograd.frameworks.mindspore.convert import to_value
from isograd.frameworks.mindspore.differentiate import FLOATS
from isograd.frameworks.user_code import _is_users

_PLACES = (ops, ops.functional, ops.function, mint, mint.nn.functional, mint.linalg, mint.special)
_OPERATORS = (
    "__abs__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ "
    "__truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ "
    "__rpow__ __neg__ __pos__ __matmul__ __rmatmul__ __getitem__"
).split()
#: They give the same tensor again, or leave MindSpore.
_SILENT = frozenset(
    "asnumpy numpy item tolist clone copy contiguous copy_ register_hook set_data init_data "
    "data_sync value pin_memory requires_grad_ assign_value".split()
)

#: What stands in the place of an event: of its number, the tensor, the tensors that the function
#: was given, and which of the function's results it is.
Change = Callable[[int, Any, list[Any], int], Any]


class FunctionTrace:
    """Notes the outermost functions that return a floating tensor.

    Every floating tensor of a result is an event of its own.  results: the events' live tensors;
    events: the same with their values, only where keep_values is asked for.
    change: what stands in an event's place instead.
    root: the cell that is run; if it is the library's, the functions inside it are noted.
    open_cells: ids of library cells inside which functions are noted all the same.
    """

    def __init__(
        self,
        root: nn.Cell | None = None,
        open_cells: Collection[int] = (),
        change: Change | None = None,
        keep_values: bool = True,
    ) -> None:
        self.results: list[Any] = []
        self.events: list[FunctionCall] = []
        self.lines: list[tuple[str, int] | None] = []
        self._change = change
        self._keep_values = keep_values
        is_layer = root is not None and is_library(root) and not isinstance(root, CONTAINERS)
        self._cells_are_events = not is_layer
        self._open = set(open_cells) | {id(root)}
        self._given: set[int] = set()
        self._depth = 0

    def give(self, tensors: Collection[Any]) -> None:
        """A cell that returns one of these tensors is pinned and no event."""
        self._given |= {id(tensor) for tensor in tensors}

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Nothing is noted inside."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def run(
        self, name: str, original: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """Call a function, and note what it returns unless another that is noted has called it."""
        if self._depth:
            return original(*args, **kwargs)
        with self.silent():
            result = original(*args, **kwargs)
            return self._note(name, result, (args, kwargs))

    def _note(self, name: str, result: Any, arguments: Any, number: int = 0) -> Any:
        if isinstance(result, ms.Tensor):
            return self._note_part(name, result, arguments, number)
        if not isinstance(result, (tuple, list)) or hasattr(result, "_fields"):
            return result
        parts = [self._note(name, part, arguments, i) for i, part in enumerate(result)]
        return type(result)(parts)

    def _note_part(self, name: str, part: Any, arguments: Any, number: int) -> Any:
        if part.dtype not in FLOATS:
            return part
        if self._change is not None:
            part = self._change(len(self.results), part, list(_tensors(arguments)), number)
        self.results.append(part)
        if self._keep_values:
            line = users_line()
            where = f"{line[0].rpartition('/')[2]}:{line[1]}" if line else None
            self.lines.append(line)
            self.events.append(FunctionCall("", name.strip("_"), (), to_value(part), where))
        return part

    @contextlib.contextmanager
    def watching(self, cells: Collection[nn.Cell] = ()) -> Iterator[None]:
        """Wrap functions, methods, primitives and library cells until the end of the block.

        cells: those of the user's network, whose attributes may hold functions.
        """
        undo: list[tuple[Any, str, Any]] = []

        def replace(place: Any, name: str, value: Any) -> None:
            undo.append((place, name, vars(place).get(name)))
            _put(place, name, value)

        is_outermost = not _ACTIVE
        try:
            if is_outermost:
                _FUNCTIONS.wrap()
            for holder in (*_user_modules(), *cells):
                for name, value in list(vars(holder).items()):
                    again = _wrapped_again(value, _FUNCTIONS.wrapped)
                    if again is not None:
                        replace(holder, name, again)
            if is_outermost:
                for name in _methods():
                    replace(ms.Tensor, name, _noting(name, getattr(ms.Tensor, name)))
                for kind in _primitives():
                    replace(kind, "__call__", _noting_primitive(vars(kind)["__call__"]))
                replace(nn.Cell, "__call__", _noting_cell(nn.Cell.__call__))
            _ACTIVE.append(self)
            try:
                yield
            finally:
                _ACTIVE.pop()
        finally:
            for place, name, before in reversed(undo):
                _put(place, name, before)
            if is_outermost:
                _FUNCTIONS.unwrap()

    def run_cell(
        self, original: Callable[..., Any], cell: nn.Cell, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """Call a cell, and note what it returns if it is one function of the library."""
        if self._depth or not self._is_event(cell):
            return original(cell, *args, **kwargs)
        with self.silent():
            result = original(cell, *args, **kwargs)
            if any(id(tensor) in self._given for tensor in _tensors(result)):
                return result
            return self._note(type(cell).__name__, result, (args, kwargs))

    def _is_event(self, cell: nn.Cell) -> bool:
        """Whether a cell is one function of the library, and not a frame around the user's code."""
        if not self._cells_are_events or id(cell) in self._open:
            return False
        if is_library(cell) and not isinstance(cell, CONTAINERS):
            if all(is_library(part) for _, part in cell.cells_and_names()):
                return True
        self._open.add(id(cell))
        return False


#: The traces that watch now, the innermost last. What is wrapped asks them, so that wrapping a
#: thousand functions anew for every block, most of its time, is wrapping them once.
_ACTIVE: list[FunctionTrace] = []


@functools.cache
def _noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does the same, and is noted by all traces that watch."""

    @functools.wraps(original)
    def noted(*args: Any, **kwargs: Any) -> Any:
        return _noted(len(_ACTIVE), name, original, args, kwargs)

    return noted


def _noted(
    level: int, name: str, original: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
) -> Any:
    if level == 0:
        return original(*args, **kwargs)

    def inner(*given: Any, **named: Any) -> Any:
        return _noted(level - 1, name, original, given, named)

    return _ACTIVE[level - 1].run(name, inner if level > 1 else original, args, kwargs)


@functools.cache
def _noting_primitive(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(primitive: Any, /, *args: Any, **kwargs: Any) -> Any:
        return _noted(len(_ACTIVE), str(primitive.name), original, (primitive, *args), kwargs)

    return call


@functools.cache
def _noting_cell(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(cell: Any, /, *args: Any, **kwargs: Any) -> Any:
        called = original
        for trace in _ACTIVE[:-1]:
            called = functools.partial(_through, trace, called)
        if not _ACTIVE:
            return called(cell, *args, **kwargs)
        return _ACTIVE[-1].run_cell(called, cell, args, kwargs)

    return call


def _through(
    trace: FunctionTrace, original: Callable[..., Any], cell: nn.Cell, *args: Any, **kwargs: Any
) -> Any:
    return trace.run_cell(original, cell, args, kwargs)


class _LibraryFunctions:
    """The functions of the library's modules, which are looked up once, not for every block.

    wrapped: what notes a function, by the id of the bare one.
    """

    def __init__(self) -> None:
        self.wrapped: dict[int, Any] = {}
        self._bare: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._noting: list[dict[str, Any]] = []
        self._sizes: list[int] = []

    def wrap(self) -> None:
        """Put what notes the functions into the library's modules."""
        places = [vars(place) for place in (*_PLACES, *_numpy())]
        if not self._are_of(places):
            self._read(places)
        for place, noting in zip(places, self._noting, strict=True):
            place.update(noting)

    def unwrap(self) -> None:
        """Put the bare functions back."""
        for place, bare in self._bare:
            place.update(bare)

    def _are_of(self, places: list[dict[str, Any]]) -> bool:
        if [len(place) for place in places] != self._sizes:
            return False
        return all(bare.items() <= place.items() for place, bare in self._bare)

    def _read(self, places: list[dict[str, Any]]) -> None:
        self._bare = [(place, _functions_of(place)) for place in places]
        self._sizes = [len(place) for place in places]
        self.wrapped = {}
        self._noting = []
        for _, bare in self._bare:
            for name, value in bare.items():
                self.wrapped.setdefault(id(value), _noting(name, value))
            self._noting.append({name: self.wrapped[id(value)] for name, value in bare.items()})


def _functions_of(place: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in place.items()
        if isinstance(value, types.FunctionType) and not name.startswith("_")
    }


_FUNCTIONS = _LibraryFunctions()


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors of nested arguments, parameters among them, in order."""
    if isinstance(value, ms.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))


def _put(place: Any, name: str, value: Any) -> None:
    if isinstance(place, nn.Cell):
        place.__dict__[name] = value  # a cell's own setattr would look at the value
    elif value is None:
        delattr(place, name)
    else:
        setattr(place, name, value)


def _wrapped_again(value: Any, wrapped: Mapping[int, Any]) -> Any:
    """What a user's name for a wrapped function must be set to, or None."""
    if isinstance(value, functools.partial) and id(value.func) in wrapped:
        return functools.partial(wrapped[id(value.func)], *value.args, **value.keywords)
    return wrapped.get(id(value)) if isinstance(value, types.FunctionType) else None


@functools.cache
def _methods() -> tuple[str, ...]:
    """The methods and operators of `Tensor` that may return a floating tensor."""
    found = [name for name in _OPERATORS if hasattr(ms.Tensor, name)]
    for name in dir(ms.Tensor):
        owner = next(kind for kind in ms.Tensor.__mro__ if name in vars(kind))
        kinds = (types.FunctionType, types.MethodDescriptorType)
        if not name.startswith("_") and name not in _SILENT:
            if isinstance(vars(owner)[name], kinds):
                found.append(name)
    return tuple(found)


@functools.cache
def _primitives() -> tuple[type, ...]:
    """The classes of primitives that define how they are called."""

    def below(kind: Any) -> Iterator[type]:
        yield kind
        for part in kind.__subclasses__():
            yield from below(part)

    found = dict.fromkeys(below(ops.Primitive))
    return tuple(k for k in found if isinstance(vars(k).get("__call__"), types.FunctionType))


def _numpy() -> tuple[Any, ...]:
    """`mindspore.numpy`, if the user's code has imported it."""
    module = sys.modules.get("mindspore.numpy")
    return (module,) if module is not None else ()


@functools.cache
def _is_of_user(name: str, path: str) -> bool:
    return name.partition(".")[0] not in ("mindspore", "isograd", "numpy") and _is_users(path)


def _user_modules() -> list[Any]:
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and _is_of_user(name, path):
            found.append(module)
    return found
