"""Sees MindSpore's operations between cells by wrapping public functions while recording.

MindSpore has no hook for operations, so the functions of `mindspore.ops`, `mindspore.mint` and
`mindspore.mint.nn.functional` and the methods of Tensor are replaced by wrappers and put back.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore network

_MODULES = (mindspore.ops, mindspore.mint, mindspore.mint.nn.functional)
_IN_PLACE = re.compile(
    r"[a-z][a-z0-9_]*[a-z0-9]_|assign(_\w+)?|set_data|__setitem__"
    r"|__i(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor)__"
)
#: Special methods of Tensor that compute.
_OPERATORS = frozenset(
    f"__{name}__"
    for name in """add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv
    rfloordiv mod rmod pow rpow matmul rmatmul imatmul neg abs invert eq ne lt le gt ge and or xor
    getitem""".split()
)
#: Methods that read a tensor and compute nothing.
_READERS = frozenset(
    """asnumpy numpy item tolist size dim numel is_contiguous contiguous data_ptr nelement
    element_size register_hook set_data value init_data flush_from_cache set_dtype get_bytes
    stub_sync storage stride storage_offset ndimension from_numpy assign_value is_complex
    is_floating_point is_signed has_init get_dtype move_to requires_grad_ retain_grad backward
    data_sync to_dlpack from_dlpack convert_bytes_to_tensor""".split()
)


class _Patches:
    """Replaces attributes and puts them back."""

    def __init__(self) -> None:
        self._depth = 0
        self._undo: list[Callable[[], None]] = []

    def detach(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is seen inside, for the recorder's own operations."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        own = name in vars(owner)
        original = inspect.getattr_static(owner, name)
        setattr(owner, name, functools.wraps(original)(wrap(original)))
        restore = functools.partial(setattr, owner, name, original)
        self._undo.append(restore if own else functools.partial(delattr, owner, name))


class Glue(_Patches):
    """Passes each operation that is glue to `operation`, which runs it."""

    def __init__(
        self, is_glue_now: Callable[[], bool], operation: Callable[[str, Any, Any], Any]
    ) -> None:
        super().__init__()
        self._is_glue_now = is_glue_now
        self._operation = operation

    def attach(self) -> None:
        """Wrap the functions and methods."""
        for module in _MODULES:
            for name, value in list(vars(module).items()):
                if _is_operation(name, value):
                    self._replace(module, name, self._showing(f"{module.__name__}.{name}"))
        for name in dir(mindspore.Tensor):
            if _is_method(name, inspect.getattr_static(mindspore.Tensor, name)):
                self._replace(mindspore.Tensor, name, self._showing(f"mindspore.Tensor.{name}"))

    def _showing(self, shown: str) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if self._depth or not self._is_glue_now():
                    return original(*args, **kwargs)
                with self.paused():
                    return self._operation(shown, (args, kwargs), lambda: original(*args, **kwargs))

            return wrapper

        return wrap


class InPlaceGuard(_Patches):
    """Calls `before` whenever Python code is about to change a tensor in place."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def attach(self) -> None:
        """Wrap what works in place: `name_`, `assign…`, `__setitem__`, `__iadd__` and its kind."""
        for owner in (*_MODULES, mindspore.Tensor, mindspore.Parameter):
            inherits = owner is mindspore.Tensor  # its operators live in a base written in C++
            for name in dir(owner) if inherits else list(vars(owner)):
                if _IN_PLACE.fullmatch(name) and callable(inspect.getattr_static(owner, name)):
                    self._replace(owner, name, self._warning)

    def _warning(self, original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self._depth:
                self._before()
            return original(*args, **kwargs)

        return wrapper


def _is_operation(name: str, value: Any) -> bool:
    if name.startswith("_") or isinstance(value, (type, types.ModuleType)) or not callable(value):
        return False
    home = str(getattr(value, "__module__", "") or "")
    return isinstance(value, types.FunctionType | types.BuiltinFunctionType) and (
        ".function" in home or "mint" in home or ".auto_generate" in home or "functional" in home
    )


def _is_method(name: str, value: Any) -> bool:
    if name in _READERS or isinstance(value, (property, staticmethod, classmethod, type)):
        return False
    return callable(value) and (name in _OPERATORS or not name.startswith("_"))
