"""Blocks without gradients in functions that run line by line and in a static graph.

A graph has no recorder to switch off: what such a block computes is stopped behind it.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.training_gradients import no_grad

_UNRECORDED = no_grad()


class _Entered(nn.Cell):  # type: ignore[misc]
    """Stops recording; in a graph it does nothing."""

    def __call__(self) -> None:
        _UNRECORDED.__enter__()

    def construct(self) -> None:
        return None


class _Left(nn.Cell):  # type: ignore[misc]
    """Goes on as before the block; in a graph it does nothing."""

    def __call__(self) -> None:
        _UNRECORDED.__exit__()

    def construct(self) -> None:
        return None


_ENTERED = _Entered()
_LEFT = _Left()


@ms.jit_class
class unrecorded_block:  # noqa: N801  # as torch.no_grad
    """torch.no_grad as a block that a graph takes, too."""

    def __enter__(self) -> None:
        _ENTERED()

    def __exit__(self, *_: object) -> None:
        _LEFT()


class _Unlearned(nn.Cell):  # type: ignore[misc]
    """The value itself where nothing was recorded of it; in a graph no gradient passes."""

    def __call__(self, value: Any) -> Any:
        return value

    def construct(self, value: Any) -> Any:
        return _stopped(value)


def _stopped(value: Any) -> Any:
    if isinstance(value, ms.Tensor):
        return ops.stop_gradient(value)
    if isinstance(value, tuple):
        return tuple([_stopped(part) for part in value])
    if isinstance(value, (list, dict)):
        raise TypeError("what a block without gradients puts into a list does not compile.")
    return value


_UNLEARNED = _Unlearned()


def unlearned(value: Any) -> Any:
    """What a block without gradients has computed."""
    return _UNLEARNED(value)


class _WithoutGradient(nn.Cell):  # type: ignore[misc]
    """New tensors without a gradient, in lists and dictionaries, too, where no graph runs."""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return type(value)({key: self(part) for key, part in value.items()})
        if isinstance(value, list):
            return [self(part) for part in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, tuple):
            return tuple(map(self, value))
        return ops.stop_gradient(value) if isinstance(value, ms.Tensor) else value

    def construct(self, value: Any) -> Any:
        return _stopped(value)


_WITHOUT_GRADIENT = _WithoutGradient()


def without_gradient(value: Any) -> Any:
    """What a function without gradients has computed."""
    return _WITHOUT_GRADIENT(value)
