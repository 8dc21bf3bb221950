"""Sees torch's operations between modules: additions, concatenations, reshapes, the loss."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# This module is loaded only for a torch network.
from torch.overrides import TorchFunctionMode, resolve_name  # noqa: TID253

#: What reads a tensor and computes nothing.
_READERS = frozenset(
    """grad data _base requires_grad_ detach_ retain_grad backward register_hook is_floating_point
    numpy item tolist cpu cuda numel size dim stride""".split()
)


class GlueMode(TorchFunctionMode):
    """Passes each operation that is glue to `operation`, which runs it."""

    def __init__(
        self,
        is_glue_now: Callable[[], bool],
        operation: Callable[[str, Callable[[], Any], Callable[[], Any]], Any],
    ) -> None:
        super().__init__()
        self._is_glue_now = is_glue_now
        self._operation = operation
        self._depth = 0

    def attach(self) -> None:
        """Begin to see operations."""
        self.__enter__()  # type: ignore[no-untyped-call]

    def detach(self) -> None:
        """Stop seeing operations."""
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def paused(self) -> GlueMode._Pause:
        """A context in which nothing is seen, for the recorder's own operations."""
        return GlueMode._Pause(self)

    class _Pause:
        def __init__(self, mode: GlueMode) -> None:
            self._mode = mode

        def __enter__(self) -> None:
            self._mode._depth += 1

        def __exit__(self, *_: object) -> None:
            self._mode._depth -= 1

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operation, and show it if it is glue."""
        kwargs = kwargs or {}
        name = "" if self._depth else operation_name(func)
        if not name or not self._is_glue_now():
            return func(*args, **kwargs)
        with self.paused():
            return self._operation(name, lambda: (args, kwargs), lambda: func(*args, **kwargs))


@functools.cache
def operation_name(func: Any) -> str:
    """The public name of an operation, for example `torch.cat`; empty for what computes nothing."""
    plain = getattr(func, "__name__", "")
    if plain == "__get__":
        attribute = getattr(getattr(func, "__self__", None), "__name__", "")
        return f"torch.Tensor.{attribute}" if attribute in ("T", "mT", "H", "mH") else ""
    if plain in _READERS or plain in ("__set__", "__len__", "__bool__"):
        return ""
    try:
        return resolve_name(func) or plain
    except (TypeError, AttributeError):
        return str(plain)
