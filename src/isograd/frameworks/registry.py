"""Which adapter drives which framework; an adapter is imported only when it is opened."""

from __future__ import annotations

import importlib

from isograd.errors import UsageError
from isograd.frameworks.base import Framework

NAMES = ("torch", "mindspore", "fake")
#: The adapters' modules by framework, and what the first pass or step imports, which takes as long
#: as the framework itself.
_MODULES = {
    "torch": ("isograd.frameworks.torch.adapter", "torch._dynamo"),
    "mindspore": (
        "isograd.frameworks.mindspore.adapter",
        "isograd.frameworks.mindspore.static_graph.alone",
    ),
    "fake": ("isograd.frameworks.fake.adapter",),
}


def open_framework(name: str) -> Framework:
    """Import an adapter and make one; raises `UsageError` for an unknown name."""
    if name == "torch":
        from isograd.frameworks.torch.adapter import TorchFramework

        return TorchFramework()
    if name == "mindspore":
        from isograd.frameworks.mindspore.adapter import MindSporeFramework

        return MindSporeFramework()
    if name in ("mindspore-compiled", "mindspore-own"):
        from isograd.frameworks.mindspore.static_graph.alone import CompiledModules

        return CompiledModules(own=name == "mindspore-own")
    if name == "fake":
        from isograd.frameworks.fake.adapter import FakeFramework

        return FakeFramework()
    raise UsageError(f"{name!r} is no framework", f"Use one of {', '.join(NAMES[:2])}.")


def package_of(name: str) -> str:
    """The framework of an adapter: "mindspore" of "mindspore-compiled"."""
    return name.partition("-")[0]


def import_adapters(name: str) -> None:
    """Import what the adapters of a framework and their first passes would; none is made."""
    for module in _MODULES.get(name, ()):
        importlib.import_module(module)
