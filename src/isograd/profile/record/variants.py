"""Settings that `--try` changes, one at a time; each is applied right after the import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Relative difference of losses over some steps: 64 roundings of float32 (2^-24) and 8 of
#: bfloat16 (2^-8).
FLOAT32 = 64 * 2.0**-24
BFLOAT16 = 8 * 2.0**-8


@dataclass(frozen=True)
class Variant:
    """apply: called after the framework's import; wrap: makes another network of the one found."""

    name: str
    framework: str
    setting: str
    tolerance: float
    apply: Callable[[], None]


def _nothing() -> None:
    """Change nothing."""


def _threads(count: int) -> Callable[[], None]:
    def apply() -> None:
        torch: Any = sys.modules["torch"]
        torch.set_num_threads(count)
        torch.set_num_threads = lambda given: None

    return apply


def _denormals() -> None:
    torch: Any = sys.modules["torch"]
    torch.set_flush_denormal(True)


def _autocast() -> None:
    """Run the outermost network's forward pass under bfloat16."""
    torch: Any = sys.modules["torch"]
    original = torch.nn.Module.__call__
    depth = [0]

    def call(module: Any, *arguments: Any, **options: Any) -> Any:
        depth[0] += 1
        try:
            if depth[0] > 1 or not module.training:
                return original(module, *arguments, **options)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return original(module, *arguments, **options)
        finally:
            depth[0] -= 1

    torch.nn.Module.__call__ = call


def _loader(**changes: Any) -> Callable[[], None]:
    def apply() -> None:
        loader: Any = sys.modules["torch"].utils.data.DataLoader
        original = loader.__init__

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            original(self, *arguments, **{**options, **changes})

        loader.__init__ = init

    return apply


def _launch_blocking() -> None:
    sys.modules["mindspore"].runtime.launch_blocking()


_CORES = os.cpu_count() or 1
BASELINE = Variant("baseline", "", "as it is", 0.0, _nothing)
VARIANTS = (
    Variant("threads-1", "torch", "torch.set_num_threads(1)", FLOAT32, _threads(1)),
    Variant(
        "threads-all", "torch", f"torch.set_num_threads({_CORES})", FLOAT32, _threads(_CORES)
    ),
    Variant("flush-denormal", "torch", "torch.set_flush_denormal(True)", FLOAT32, _denormals),
    Variant(
        "bfloat16", "torch", "torch.autocast('cpu', dtype=torch.bfloat16)", BFLOAT16, _autocast
    ),
    Variant("workers-2", "torch", "DataLoader(num_workers=2)", FLOAT32, _loader(num_workers=2)),
    Variant(
        "launch-blocking", "mindspore", "mindspore.runtime.launch_blocking()", FLOAT32,
        _launch_blocking,
    ),
)  # fmt: skip
