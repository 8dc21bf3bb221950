"""Which kernel measures: numba's for much data, numpy's for little or where numba is missing."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from typing import Any, Protocol

from isograd.compare.files import numpy_kernels
from isograd.compare.files.tally import Row

#: Below this numpy is done before numba is imported (2 s; 6 s more when it compiles once).
COMPILED_FROM_BYTES = 100_000_000

Measure = Callable[..., Row]
Recount = Callable[..., int]


class Kernels(Protocol):
    """What measures float arrays: `numpy_kernels.measure` and `numpy_kernels.recount` say how."""

    def measure(self, value: str, bits: str) -> Measure:
        """The kernel for values ("f" or "d") whose bits are "i" or "l", as numpy's characters."""

    def recount(self, value: str) -> Recount:
        """The kernel that counts marked blocks again."""


class PlainKernels:
    """numpy's."""

    def measure(self, value: str, bits: str) -> Measure:
        return numpy_kernels.measure

    def recount(self, value: str) -> Recount:
        return numpy_kernels.recount


class CompiledKernels:
    """numba's; each is compiled when it is asked for first, or loaded from numba's cache."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Any] = {}
        self._lock = threading.Lock()

    def measure(self, value: str, bits: str) -> Measure:
        found: Measure = self._kernel("measure", value, bits)
        return found

    def recount(self, value: str) -> Recount:
        found: Recount = self._kernel("recount", value)
        return found

    def _kernel(self, name: str, *types: str) -> Any:
        key = (name, *types)
        with self._lock:
            if key not in self._found:
                from isograd.compare.files import numba_kernels

                self._found[key] = getattr(numba_kernels, name)(*types)
            return self._found[key]


_PLAIN, _COMPILED = PlainKernels(), CompiledKernels()


def is_compiled_there() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


def kernels(is_compiled: bool) -> Kernels:
    """numba's kernels or numpy's."""
    return _COMPILED if is_compiled else _PLAIN
