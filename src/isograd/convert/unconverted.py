"""Replaces a thing that was not converted; copied into the ports that need it."""

from __future__ import annotations

import sys
from typing import Any


class UnconvertedError(ImportError, NotImplementedError):
    """Something that was not converted is used; code that can do without it goes on."""


class _Missing:
    """A name that was not converted: it can be imported and passed around, and says so when used.

    Called while a module is imported (a decorator, a registry) it gives another such name.
    """

    def __init__(self, name: str, raises: bool = False) -> None:
        self.__dict__.update(_name=name, _raises=raises)

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0"  # code that asks for a newer one goes its other way
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{self._name}.{name}")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self._raises or not _is_importing():
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

    def __iter__(self) -> Any:
        raise UnconvertedError(f"{self._name} was not converted: finish the lines that use it.")

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __bool__(self) -> bool:
        if _is_importing():
            return False
        raise UnconvertedError(f"{self._name} was not converted: finish the lines that use it.")

    def __repr__(self) -> str:
        return f"unconverted({self._name!r})"


def _is_importing() -> bool:
    """Whether the calling code runs because a module is being imported."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _ignore(*inputs: Any, **named: Any) -> None:
    """Nothing."""


def unconverted(name: str, raises: bool = False) -> Any:
    """What replaces a name of torch that was not converted.

    raises: even while a module is imported, because the code is prepared for an ImportError.
    """
    return _Missing(name, raises)
