"""A pickle machine of our own: it builds plain containers and calls nothing that a file names.

A global is looked up in a fixed table of plain values and of functions of isograd's; any other is
refused by its name.  No class is instantiated and no attribute is set.  Sizes that the pickle
announces are compared with the bytes that are there before memory is reserved.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

MAX_DEPTH = 100
#: More opcodes than a checkpoint of a million tensors needs.
MAX_OPCODES = 50_000_000

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = frozenset(
    """INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    BYTEARRAY8""".split()
)
_PLAIN = (str, int, float, bool, bytes, type(None))


class RefusedPickle(ValueError):  # noqa: N818 - it is caught and turned into a CheckpointError
    """What the pickle asked for and does not get."""


class _Mark:
    """Where a container's items begin on the stack."""


class Global:
    """A value that a pickle may name and that it can only pass on, such as a dtype."""

    def __init__(self, name: str, value: object = None) -> None:
        self.name = name
        self.value = value


class Attributes(dict[str, Any]):
    """The attributes of an object that holds nothing else, such as argparse's settings."""


Function = Callable[..., Any]


def load(
    stream: BinaryIO,
    functions: Mapping[str, Function],
    values: Mapping[str, Any],
    persistent: Callable[[Any], Any],
) -> Any:
    """Run one pickle, up to its end; the stream stands behind it.

    functions, values: by ``module.name``; persistent: what a persistent id means.
    Raises ValueError for anything malformed or not allowed.
    """
    machine = _Machine(functions, values, persistent)
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
            if opcode.name == "STOP":
                return machine.pop()
            if count > MAX_OPCODES:
                raise RefusedPickle("its pickle does not end")
            machine.run(opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise RefusedPickle(f"its pickle is malformed ({error!r:.100})") from error
    raise RefusedPickle("its pickle does not end")


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        values: Mapping[str, Any],
        persistent: Callable[[Any], Any],
    ) -> None:
        self._functions, self._values, self._persistent = functions, values, persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        """Take the top of the stack; never a mark."""
        value = self._stack.pop()
        if isinstance(value, _Mark):
            raise RefusedPickle("its pickle is malformed (a mark stands where a value should)")
        return value

    def run(self, name: str, argument: Any) -> None:
        """Run one opcode."""
        if name in _LITERALS:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in ("PROTO", "FRAME"):
            return
        elif name == "MARK":
            self._stack.append(_Mark())
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[int(argument)] = self._stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self._stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self._stack.append(self._memo[int(argument)])
        else:
            operation = getattr(self, f"_run_{name.lower()}", None)
            if operation is None:
                raise RefusedPickle(f"its pickle uses {name}, which no checkpoint needs")
            operation(argument)

    def _items(self) -> list[Any]:
        """Everything above the last mark."""
        items: list[Any] = []
        while True:
            value = self._stack.pop()
            if isinstance(value, _Mark):
                return items[::-1]
            items.append(value)

    def _run_pop(self, _: Any) -> None:
        self._stack.pop()

    def _run_pop_mark(self, _: Any) -> None:
        self._items()

    def _run_dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def _run_empty_dict(self, _: Any) -> None:
        self._stack.append({})

    def _run_empty_list(self, _: Any) -> None:
        self._stack.append([])

    def _run_empty_tuple(self, _: Any) -> None:
        self._stack.append(())

    def _run_empty_set(self, _: Any) -> None:
        self._stack.append(set())

    def _run_tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._items()))

    def _run_tuple1(self, _: Any) -> None:
        self._stack.append((self.pop(),))

    def _run_tuple2(self, _: Any) -> None:
        second, first = self.pop(), self.pop()
        self._stack.append((first, second))

    def _run_tuple3(self, _: Any) -> None:
        third, second, first = self.pop(), self.pop(), self.pop()
        self._stack.append((first, second, third))

    def _run_list(self, _: Any) -> None:
        self._stack.append(self._items())

    def _run_dict(self, _: Any) -> None:
        items = self._items()
        self._stack.append({})
        self._fill(items)

    def _run_append(self, _: Any) -> None:
        value = self.pop()
        self._top(list).append(value)

    def _run_appends(self, _: Any) -> None:
        items = self._items()
        self._top(list).extend(items)

    def _run_additems(self, _: Any) -> None:
        items = self._items()
        self._top(set).update(_key(item) for item in items)

    def _run_frozenset(self, _: Any) -> None:
        self._stack.append(frozenset(_key(item) for item in self._items()))

    def _run_setitem(self, _: Any) -> None:
        value, key = self.pop(), self.pop()
        self._fill([key, value])

    def _run_setitems(self, _: Any) -> None:
        self._fill(self._items())

    def _fill(self, items: list[Any]) -> None:
        if len(items) % 2:
            raise RefusedPickle("its pickle is malformed (a name without a value)")
        found = self._top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            found[_key(key)] = value

    def _top(self, kind: type) -> Any:
        if type(self._stack[-1]) is not kind:
            raise RefusedPickle(f"its pickle is malformed (no {kind.__name__} to fill)")
        return self._stack[-1]

    def _run_global(self, argument: str) -> None:
        self._global(argument.replace(" ", "."))

    def _run_stack_global(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        self._global(f"{module}.{name}")

    def _global(self, name: str) -> None:
        if name in self._functions:
            self._stack.append(Global(name, self._functions[name]))
        elif name in self._values:
            self._stack.append(Global(name, self._values[name]))
        else:
            raise RefusedPickle(f"its pickle names {name!r:.200}, which is no part of a tensor")

    def _run_reduce(self, _: Any) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Global) or function.name not in self._functions:
            raise RefusedPickle("its pickle calls what is no function")
        if not isinstance(arguments, tuple):
            raise RefusedPickle("its pickle is malformed (a call without arguments)")
        self._stack.append(self._functions[function.name](*arguments))

    def _run_newobj(self, argument: Any) -> None:
        self._run_reduce(argument)

    def _run_build(self, _: Any) -> None:
        """Only settings have a state that counts; an OrderedDict's `_metadata` does not."""
        state = self.pop()
        if isinstance(self._stack[-1], Attributes) and isinstance(state, dict):
            self._stack[-1].update({str(_key(name)): value for name, value in state.items()})

    def _run_binpersid(self, _: Any) -> None:
        self._stack.append(self._persistent(self.pop()))


def _key(key: Any) -> Any:
    """A key of a dictionary or a set; tuples of tuples would take for ever to hash."""
    if isinstance(key, _PLAIN):
        return key
    if isinstance(key, tuple) and len(key) < 64 and all(isinstance(k, _PLAIN) for k in key):
        return key
    raise RefusedPickle("its pickle uses a container as a name")
