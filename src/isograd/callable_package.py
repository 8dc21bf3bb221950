"""Packages that can be called: `isograd.verify(...)`, although `isograd.verify` is a package.

Importing `isograd.verify.case` binds the package as an attribute of `isograd`, over whatever stood
there.  So the package itself is made callable: in either order of imports, `isograd.verify` is one
object, whose submodules are found as those of any package.  A type checker sees the function,
because `isograd/__init__.py` imports it under TYPE_CHECKING.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package that calls one function of its own, which is imported by the first call."""

    _entry: str

    def __call__(self, /, *arguments: Any, **options: Any) -> Any:
        """Call the function that the package means."""
        return self._function()(*arguments, **options)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        """Pickle by name, as a function is, so that pools can map it."""
        return importlib.import_module, (self.__name__,)

    @property
    def __signature__(self) -> inspect.Signature:
        """What `help`, `inspect` and notebooks show."""
        return inspect.signature(self._function())

    def _function(self) -> Callable[..., Any]:
        place, _, name = self._entry.partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(place), name)
        return function


def make_callable(package: str, entry: str) -> None:
    """Let this package call the function at `module:name`; its `__init__.py` calls this."""
    module = sys.modules[package]
    module.__class__ = CallablePackage
    module.__dict__["_entry"] = entry
