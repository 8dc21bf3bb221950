"""Collects the names of torch that scan resolves to: `python -m isograd.scan.collect`.

Run it with the torch whose names scan shall know; it rewrites `torch_names.json` beside this file.
Scan itself never imports torch.

Kinds: f function, M class of modules, O class of optimizers, S class of learning-rate schedulers,
c other class, d dtype, o other object, m module.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
import warnings
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("torch_names.json")
#: Parts of torch that are its compiler's and exporter's own machinery, not what networks call.
_SKIPPED = (
    "_", "torch.testing", "torch.ao", "torch.fx.experimental", "torch.fx.passes", "torch.onnx.",
    "torch.utils.benchmark", "torch.utils.data.datapipes", "torch.utils.tensorboard",
    "torch.utils.hipify", "torch.utils.bottleneck", "torch.distributed.", "torch.export.",
    "torch.backends.xeon", "torch.cuda.tunable", "torch.contrib", "torch.package.",
    "torch.multiprocessing.", "torch.utils.model_dump", "torch.utils.viz", "torch.mtia",
    "torch.xpu",
    "torch.csrc", "torch.lib", "torch.include", "torch.share", "torch.bin",
)  # fmt: skip
#: Kept although they begin like a skipped one.
_KEPT = ("torch.distributed.fsdp", "torch.distributed.optim", "torch.distributed.algorithms")

#: Where people import from; an object that several modules hold is named by the first of these.
_HOMES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
    "torch.nn.utils.rnn", "torch.nn.utils.parametrizations", "torch.nn.parallel", "torch.optim",
    "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data",
    "torch.utils.data.distributed", "torch.utils.checkpoint", "torch.distributed", "torch.amp",
    "torch.linalg", "torch.special", "torch.fft", "torch.cuda", "torch.cuda.amp", "torch.autograd",
    "torch.autograd.functional", "torch.jit", "torch.distributions", "torch.backends.cudnn",
    "torch.sparse", "torch.hub", "torch.fx", "torch.onnx", "torch.profiler", "torch.random",
)  # fmt: skip


def collect() -> dict[str, Any]:
    """Names with their kinds, other spellings, the members of instances, and named results."""
    import torch

    names: dict[str, str] = {}
    homes: dict[int, str] = {}
    spelled: dict[str, str] = {}
    for module_name, module in sorted(_modules().items(), key=lambda item: _order(item[0])):
        names[module_name] = "m"
        for attribute in sorted(dir(module)):
            value = getattr(module, attribute, None)
            if attribute.startswith("_"):
                if module_name.startswith("torch.nn.modules.") and _kind(value, torch) == "M":
                    names[f"torch.nn.{attribute}"] = "M"  # what people derive their own from
                continue
            name = f"{module_name}.{attribute}"
            if isinstance(value, types.ModuleType):
                continue
            kind = _kind(value, torch)
            if not _is_of_torch(value, kind):
                continue
            if kind in "fMOSc" and id(value) in homes:
                spelled[name] = homes[id(value)]
                continue
            homes.setdefault(id(value), name)
            names[name] = kind
    return {
        "torch": torch.__version__.split("+")[0],
        "names": names,
        "spelled": spelled,
        "members": {
            "torch.Tensor": _members(torch.Tensor),
            "torch.nn.Module": _members(torch.nn.Module),
            "torch.optim.Optimizer": _members(torch.optim.Optimizer),
            "torch.optim.lr_scheduler.LRScheduler": _members(torch.optim.lr_scheduler.LRScheduler),
            "torch.amp.GradScaler": _members(torch.amp.GradScaler),
        },
        "results": named_results(torch),
    }


def named_results(torch: Any) -> dict[str, str]:
    """The names of the parts of what a function or method returns, by torch's own result types."""
    found: dict[str, str] = {}
    for name, made in vars(torch.return_types).items():
        if name.startswith("_") or not isinstance(made, type) or not hasattr(made, "n_fields"):
            continue
        home = torch.linalg if name.startswith("linalg_") else torch
        last = name.removeprefix("linalg_")
        parts = " ".join(made.__match_args__)  # type: ignore[attr-defined]
        if hasattr(home, last):
            found[f"{home.__name__}.{last}"] = parts
        if home is torch and hasattr(torch.Tensor, last):
            found[f"torch.Tensor.{last}"] = parts
    return found


def _order(name: str) -> tuple[int, int, str]:
    """The public home of a name comes first: torch.nn before torch.nn.modules.conv."""
    rank = _HOMES.index(name) if name in _HOMES else len(_HOMES)
    return rank, name.count("."), name


def _modules() -> dict[str, types.ModuleType]:
    import torch

    found = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
            parts = info.name.split(".")
            is_kept = info.name.startswith(_KEPT) and info.name.count(".") <= 2
            if any(part.startswith("_") for part in parts):
                continue
            if info.name.startswith(_SKIPPED) and not is_kept:
                continue
            try:
                found[info.name] = importlib.import_module(info.name)
            except BaseException:  # noqa: S112
                continue
    for name in ("torch.linalg", "torch.special", "torch.fft", "torch.backends.cudnn"):
        found[name] = importlib.import_module(name)
    return found


def _kind(value: object, torch: Any) -> str:
    if isinstance(value, torch.dtype):
        return "d"
    if isinstance(value, type):
        for base, kind in (
            (torch.nn.Module, "M"),
            (torch.optim.Optimizer, "O"),
            (torch.optim.lr_scheduler.LRScheduler, "S"),
        ):
            if issubclass(value, base):
                return kind
        return "c"
    return "f" if callable(value) else "o"


def _is_of_torch(value: object, kind: str) -> bool:
    if kind in "do":
        home = type(value).__module__
        return home.startswith("torch") or isinstance(value, (int, float, bool))
    home = getattr(value, "__module__", None) or "torch"
    return home.startswith("torch")


def _members(owner: type) -> dict[str, str]:
    """Public members: m a method, a an attribute."""
    members = {
        name: "m" if callable(getattr(owner, name, None)) else "a"
        for name in dir(owner)
        if not name.startswith("_")
    }
    annotated = {name: "a" for name in getattr(owner, "__annotations__", {}) if name[0] != "_"}
    return {**annotated, **members}


def main() -> None:
    """Write the names beside this file."""
    TARGET.write_text(json.dumps(collect(), indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
