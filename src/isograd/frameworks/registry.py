"""Which adapter drives which framework; an adapter is imported only when it is opened."""

from __future__ import annotations

import importlib

from isograd.errors import UsageError
from isograd.frameworks.base import Framework

NAMES = ("torch", "mindspore", "fake")
#: What the first pass or step imports, and takes as long as the framework itself.
_IMPORTED_LATE = {"torch": ("torch._dynamo",)}


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


def import_late(name: str) -> None:
    """Import what the first passes of an adapter would."""
    for module in _IMPORTED_LATE.get(name, ()):
        importlib.import_module(module)
