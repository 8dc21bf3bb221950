"""Sees MindSpore's operations between cells by wrapping public functions while recording.

MindSpore has no hook for operations, so the functions of `mindspore.ops`, `mindspore.mint` and
`mindspore.mint.nn.functional` and the methods of Tensor are replaced by wrappers and put back.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore network

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


class Glue:
    """Passes each operation that is glue to `operation`, which runs it."""

    def __init__(
        self, is_glue_now: Callable[[], bool], operation: Callable[[str, Any, Any], Any]
    ) -> None:
        self._is_glue_now = is_glue_now
        self._operation = operation
        self._depth = 0
        self._undo: list[Callable[[], None]] = []

    def attach(self) -> None:
        """Wrap the functions and methods."""
        try:
            for module in (mindspore.ops, mindspore.mint, mindspore.mint.nn.functional):
                for name, value in list(vars(module).items()):
                    if _is_operation(name, value):
                        self._replace(module, name, value, f"{module.__name__}.{name}")
            for name in dir(mindspore.Tensor):
                value = inspect.getattr_static(mindspore.Tensor, name)
                if _is_method(name, value):
                    self._replace(mindspore.Tensor, name, value, f"mindspore.Tensor.{name}")
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()

    def paused(self) -> Glue._Pause:
        """A context in which nothing is seen, for the recorder's own operations."""
        return Glue._Pause(self)

    class _Pause:
        def __init__(self, glue: Glue) -> None:
            self._glue = glue

        def __enter__(self) -> None:
            self._glue._depth += 1

        def __exit__(self, *_: object) -> None:
            self._glue._depth -= 1

    def _replace(self, owner: Any, name: str, original: Any, shown: str) -> None:
        own = name in vars(owner)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self._depth or not self._is_glue_now():
                return original(*args, **kwargs)
            with self.paused():
                return self._operation(shown, (args, kwargs), lambda: original(*args, **kwargs))

        def undo() -> None:
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        setattr(owner, name, wrapper)
        self._undo.append(undo)


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
