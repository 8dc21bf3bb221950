"""Stands for a thing that was not converted; copied into the ports that need it."""

from __future__ import annotations

import sys
from typing import Any


class UnconvertedError(ImportError, NotImplementedError):
    """Something that was not converted is used; code that can do without it goes on."""


class _Missing:
    """A name that was not converted: it can be imported and passed around, and says so when used.

    Called while a module is read (a decorator, a constant) it gives another such name.
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{self._name}.{name}")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        in_function = sys._getframe(1).f_code.co_flags & 1
        if in_function:
            raise UnconvertedError(f"{self._name} was not converted: finish the lines that use it.")
        return _Missing(f"{self._name}(…)")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        name = self._name

        def refuse(*inputs: Any, **named: Any) -> None:
            raise UnconvertedError(f"{name} was not converted: finish the classes that use it.")

        return (type("Unconverted", (), {"__init__": refuse, "__init_subclass__": _ignore}),)

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __subclasscheck__(self, value: Any) -> bool:
        return False

    def __getitem__(self, index: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __bool__(self) -> bool:
        if not sys._getframe(1).f_code.co_flags & 1:
            return False
        raise UnconvertedError(f"{self._name} was not converted: finish the lines that use it.")

    def __repr__(self) -> str:
        return f"unconverted({self._name!r})"


def _ignore(*inputs: Any, **named: Any) -> None:
    """Nothing."""


def unconverted(name: str) -> Any:
    """What stands for a name of torch that was not converted."""
    return _Missing(name)
