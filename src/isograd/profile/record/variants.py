"""Settings that `--try` changes, one at a time; each is applied right after the import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isograd.errors import UsageError

#: Relative difference of losses over some steps: 64 roundings of float32 (2^-24), 8 of float16
#: (2^-11) and of bfloat16 (2^-8).
FLOAT32 = 64 * 2.0**-24
FLOAT16 = 8 * 2.0**-11
BFLOAT16 = 8 * 2.0**-8


@dataclass(frozen=True)
class Variant:
    """apply: called after the framework's import; raises UsageError where it is not possible.

    tolerance: relative difference of the losses that still counts as the same training.
    """

    name: str
    framework: str
    setting: str
    tolerance: float
    apply: Callable[[], None]


def _nothing() -> None:
    """Change nothing."""


def _on_network(framework: str, change: Callable[[Any], object]) -> Callable[[], None]:
    """Change the first network that is called in training and has parameters to train."""

    def apply() -> None:
        module: Any = sys.modules[framework].nn
        kind = module.Module if framework == "torch" else module.Cell
        original = kind.__call__
        is_done: list[bool] = []

        def call(network: Any, *arguments: Any, **options: Any) -> Any:
            if not is_done and network.training and _trains(network):
                is_done.append(True)
                change(network)
            return original(network, *arguments, **options)

        kind.__call__ = call

    return apply


def _trains(network: Any) -> bool:
    if hasattr(network, "trainable_params"):
        return bool(network.trainable_params())
    return any(parameter.requires_grad for parameter in network.parameters())


def _threads(count: int) -> Callable[[], None]:
    def apply() -> None:
        torch: Any = sys.modules["torch"]
        torch.set_num_threads(count)
        torch.set_num_threads = lambda given: None

    return apply


def _denormals() -> None:
    torch: Any = sys.modules["torch"]
    torch.set_flush_denormal(True)


def _autocast(dtype: str) -> Callable[[], None]:
    """Run the outermost network's forward pass under autocast."""

    def apply() -> None:
        torch: Any = sys.modules["torch"]
        original = torch.nn.Module.__call__
        device = "cuda" if torch.cuda.is_available() else "cpu"
        depth = [0]

        def call(module: Any, *arguments: Any, **options: Any) -> Any:
            depth[0] += 1
            try:
                if depth[0] > 1 or not module.training:
                    return original(module, *arguments, **options)
                with torch.autocast(device, dtype=getattr(torch, dtype)):
                    return original(module, *arguments, **options)
            finally:
                depth[0] -= 1

        torch.nn.Module.__call__ = call

    return apply


def _loader(**changes: Any) -> Callable[[], None]:
    def apply() -> None:
        loader: Any = sys.modules["torch"].utils.data.DataLoader
        original = loader.__init__

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            original(self, *arguments, **{**options, **changes})

        loader.__init__ = init

    return apply


def _pinned() -> None:
    if not sys.modules["torch"].cuda.is_available():
        raise UsageError("pin_memory speeds up copies to a GPU, and there is none", "Leave it.")
    _loader(pin_memory=True)()


def _launch_blocking() -> None:
    sys.modules["mindspore"].runtime.launch_blocking()


def _needs_device(what: str) -> Any:
    mindspore: Any = sys.modules["mindspore"]
    if mindspore.get_context("device_target") == "CPU":
        raise UsageError(f"{what} has no effect on a CPU", "Try it on Ascend or a GPU.")
    return mindspore


def _sink() -> None:
    mindspore = _needs_device("sink mode")
    original = mindspore.Model.train

    def train(self: Any, *arguments: Any, **options: Any) -> Any:
        return original(self, *arguments, **{**options, "dataset_sink_mode": True})

    mindspore.Model.train = train


def _graph_kernels() -> None:
    _needs_device("graph kernel fusion").set_context(enable_graph_kernel=True)


def _compiled(level: str) -> Callable[[Any], None]:
    """`net.construct = mindspore.jit(net.construct, jit_level=…)`."""

    def change(network: Any) -> None:
        jit = sys.modules["mindspore"].jit
        network.construct = jit(network.construct, jit_level=level)

    return change


def _mixed(level: str) -> Callable[[Any], object]:
    return lambda network: sys.modules["mindspore"].amp.auto_mixed_precision(network, level)


def _cast(dtype: str) -> Callable[[Any], object]:
    return lambda network: network.to_float(getattr(sys.modules["mindspore"], dtype))


def _dataset(function: str, value: int) -> Callable[[], None]:
    """A default of all datasets; what the script sets itself is left as it is."""

    def apply() -> None:
        from importlib import import_module

        getattr(import_module("mindspore.dataset").config, function)(value)

    return apply


_CORES = os.cpu_count() or 1
_AUTOCAST = "torch.autocast(device, dtype=torch.{})"
_AMP = "mindspore.amp.auto_mixed_precision(net, '{}')"
_JIT = "net.construct = mindspore.jit(net.construct, jit_level='{}')"
BASELINE = Variant("baseline", "", "as it is", 0.0, _nothing)
_TORCH = (
    ("threads-1", "torch.set_num_threads(1)", FLOAT32, _threads(1)),
    ("threads-all", f"torch.set_num_threads({_CORES})", FLOAT32, _threads(_CORES)),
    ("flush-denormal", "torch.set_flush_denormal(True)", FLOAT32, _denormals),
    ("compiled", "net.compile()", FLOAT32, _on_network("torch", lambda net: net.compile())),
    ("bfloat16", _AUTOCAST.format("bfloat16"), BFLOAT16, _autocast("bfloat16")),
    ("float16", _AUTOCAST.format("float16"), FLOAT16, _autocast("float16")),
    ("workers-1", "DataLoader(num_workers=1)", FLOAT32, _loader(num_workers=1)),
    ("workers-2", "DataLoader(num_workers=2)", FLOAT32, _loader(num_workers=2)),
    ("prefetch-8", "DataLoader(num_workers=2, prefetch_factor=8)", FLOAT32,
     _loader(num_workers=2, prefetch_factor=8)),
    ("pin-memory", "DataLoader(pin_memory=True)", FLOAT32, _pinned),
)  # fmt: skip
_MINDSPORE = (
    ("launch-blocking", "mindspore.runtime.launch_blocking()", FLOAT32, _launch_blocking),
    ("jit-O0", _JIT.format("O0"), FLOAT32, _on_network("mindspore", _compiled("O0"))),
    ("jit-O1", _JIT.format("O1"), FLOAT32, _on_network("mindspore", _compiled("O1"))),
    ("amp-O1", _AMP.format("O1"), FLOAT16, _on_network("mindspore", _mixed("O1"))),
    ("amp-O2", _AMP.format("O2"), FLOAT16, _on_network("mindspore", _mixed("O2"))),
    ("amp-O3", _AMP.format("O3"), FLOAT16, _on_network("mindspore", _mixed("O3"))),
    ("float16", "net.to_float(mindspore.float16)", FLOAT16,
     _on_network("mindspore", _cast("float16"))),
    ("bfloat16", "net.to_float(mindspore.bfloat16)", BFLOAT16,
     _on_network("mindspore", _cast("bfloat16"))),
    ("graph-kernels", "set_context(enable_graph_kernel=True)", FLOAT32, _graph_kernels),
    ("sink", "Model.train(dataset_sink_mode=True)", FLOAT32, _sink),
    ("workers-all", f"mindspore.dataset.config.set_num_parallel_workers({_CORES})", FLOAT32,
     _dataset("set_num_parallel_workers", _CORES)),
    ("prefetch-64", "mindspore.dataset.config.set_prefetch_size(64)", FLOAT32,
     _dataset("set_prefetch_size", 64)),
)  # fmt: skip
VARIANTS = tuple(
    Variant(name, framework, setting, tolerance, apply)
    for framework, table in (("torch", _TORCH), ("mindspore", _MINDSPORE))
    for name, setting, tolerance, apply in table
)
