"""Which functions a replay calls in MindSpore, with their results.

PyNative has no function mode, so the functions of `mindspore.ops` and the methods of `Tensor` are
wrapped for the time of a block, also where the user's modules imported them by name.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
from mindspore import mint, ops

from isograd.frameworks.base import FunctionCall
from isograd.frameworks.mindspore.convert import to_value

_FLOATS = (ms.float16, ms.float32, ms.float64, ms.bfloat16)
_METHODS = (
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ __neg__ "
    "__matmul__ abs add astype broadcast_to chunk clamp clip cumsum div exp "
    "expand expand_as expand_dims flatten gather half float log masked_fill matmul max mean min "
    "mul narrow norm permute pow prod repeat reshape roll rsqrt sigmoid softmax split sqrt "
    "square squeeze std sub sum swapaxes swapdims take tanh tile to transpose tril triu "
    "unsqueeze var view where"
).split()


class FunctionTrace:
    """Notes the outermost functions that return a floating tensor."""

    def __init__(self) -> None:
        self.events: list[FunctionCall] = []
        self._depth = 0

    def noting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does the same and is noted."""

        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self._note(name, result)
            return result

        return noted

    def _note(self, name: str, result: Any) -> None:
        parts = result if isinstance(result, (tuple, list)) else (result,)
        for part in parts:
            if isinstance(part, ms.Tensor) and part.dtype in _FLOATS:
                self.events.append(FunctionCall("", name.strip("_"), (), to_value(part)))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Wrap functions, methods and primitives until the end of the block."""
        undo: list[tuple[Any, str, Any]] = []

        def replace(place: Any, name: str, value: Any) -> None:
            undo.append((place, name, vars(place)[name]))
            setattr(place, name, value)

        wrapped: dict[int, Any] = {}
        try:
            for place in (ops, mint, mint.nn.functional):
                for name, value in list(vars(place).items()):
                    if isinstance(value, types.FunctionType) and not name.startswith("_"):
                        again = wrapped.setdefault(id(value), self.noting(name, value))
                        replace(place, name, again)
            for module in _user_modules():
                for name, value in list(vars(module).items()):
                    if isinstance(value, types.FunctionType) and id(value) in wrapped:
                        replace(module, name, wrapped[id(value)])
            for name in _METHODS:
                owner = next((k for k in ms.Tensor.__mro__ if name in vars(k)), None)
                if owner is not None:
                    value = getattr(ms.Tensor, name)
                    own = name in vars(ms.Tensor)
                    setattr(ms.Tensor, name, self.noting(name, value))
                    undo.append((ms.Tensor, name, value if own else None))
            call = ops.Primitive.__call__
            ops.Primitive.__call__ = self._noting_primitive(call)
            undo.append((ops.Primitive, "__call__", call))
            yield
        finally:
            for place, name, value in reversed(undo):
                if value is None:
                    delattr(place, name)
                else:
                    setattr(place, name, value)

    def _noting_primitive(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(primitive: Any, *args: Any) -> Any:
            self._depth += 1
            try:
                result = original(primitive, *args)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self._note(str(primitive.name), result)
            return result

        return call


def _user_modules() -> list[Any]:
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] in ("mindspore", "isograd", "numpy") or not path:
            continue
        if "/site-packages/" not in path and "/lib/python" not in path:
            found.append(module)
    return found
