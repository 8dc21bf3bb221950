"""Modules whose arguments are their attributes, which a table of names and defaults describes."""

from __future__ import annotations

from typing import Any, ClassVar

from isograd.runtime.torch_module import Module

#: The default of an argument that has to be given.
NEEDED = object()


class WithSettings(Module):
    """A module with the arguments of `arguments`, in order, as attributes."""

    arguments: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if len(args) > len(self.arguments):
            raise TypeError(f"{name} takes {len(self.arguments)} arguments, not {len(args)}")
        given = dict(zip(self.arguments, args, strict=False))
        for key, value in kwargs.items():
            if key in given or key not in self.arguments:
                raise TypeError(f"{name} got an unexpected or a repeated argument {key!r}")
            given[key] = value
        for key, default in self.arguments.items():
            value = given.get(key, default)
            if value is NEEDED:
                raise TypeError(f"{name} is called without {key}")
            setattr(self, key, value)

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{key}={getattr(self, key)}" for key in self.arguments)
