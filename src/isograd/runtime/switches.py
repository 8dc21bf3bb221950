"""What torch's code asks about torch itself: its version, and which kernels it may use."""

from __future__ import annotations

import contextlib
import enum
import warnings
from typing import Any

import mindspore as ms  # noqa: TID253


class TorchVersion(str):
    """torch's version: compared by its numbers, as torch does, and a text everywhere else."""

    def _numbers(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        given = other if isinstance(other, (tuple, list)) else str(other).split("+")[0].split(".")
        numbers = [int(part) for part in given if str(part).isdecimal()]
        own = [int(part) for part in self.split(".")]
        length = max(len(own), len(numbers))
        mine, its = ((*side, *(0,) * (length - len(side))) for side in (own, numbers))
        return tuple(mine), tuple(its)

    def __lt__(self, other: Any) -> bool:
        mine, its = self._numbers(other)
        return mine < its

    def __le__(self, other: Any) -> bool:
        mine, its = self._numbers(other)
        return mine <= its

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        mine, its = self._numbers(other)
        return mine == its

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


#: The torch whose ways the functions here follow.
torch_version = TorchVersion("2.13.0")


class SDPBackend(enum.IntEnum):
    """The kernels of torch's attention, of which there is no choice here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def sdpa_kernel(*_: Any, **__: Any) -> contextlib.AbstractContextManager[None]:
    """No choice of attention's kernel: the values are the same."""
    return contextlib.nullcontext()


def use_deterministic_algorithms(mode: bool) -> None:
    """Kernels that give the same bits each time; MindSpore can be told once in a process."""
    try:
        ms.set_deterministic(bool(mode))
    except RuntimeError as error:
        warnings.warn(str(error), stacklevel=2)


class TracerWarning(Warning):
    """What torch warns of while it traces a network; a port never does."""


class SourceChangeWarning(Warning):
    """What torch warns of when it loads an older class; a port never does."""
