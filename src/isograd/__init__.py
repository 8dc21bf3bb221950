"""isograd proves that a MindSpore port of a PyTorch network is the same network.

Every verb of the command line is a function here: `isograd.verify("case.toml")` returns the report
that `--json` writes (`report.to_json()`), and raises `isograd.IsogradError` where the command would
end with exit status 2.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from isograd.version import __version__

if TYPE_CHECKING:
    from isograd.api import compare, convert, diagnose, params, scan, verify, weights
    from isograd.data.run import data
    from isograd.errors import IsogradError
    from isograd.explain.run import explain
    from isograd.init.run import init
    from isograd.profile.record.callback import ProfileCallback
    from isograd.profile.run import profile
    from isograd.recording.reader import Recording
    from isograd.recording.recorder import record
    from isograd.tune.run import tune
    from isograd.watch.callback import WatchCallback
    from isograd.watch.run import watch

__all__ = [
    "IsogradError",
    "ProfileCallback",
    "Recording",
    "WatchCallback",
    "__version__",
    "compare",
    "convert",
    "data",
    "diagnose",
    "explain",
    "init",
    "params",
    "profile",
    "record",
    "scan",
    "tune",
    "verify",
    "watch",
    "weights",
]

#: Verbs that are packages of the same name, which their `__init__.py` makes callable.
_PACKAGES = frozenset(
    "compare convert data diagnose explain init profile scan tune verify watch weights".split()
)
#: Where the other names stand.
_MODULES = {
    "IsogradError": "isograd.errors",
    "ProfileCallback": "isograd.profile.record.callback",
    "Recording": "isograd.recording.reader",
    "WatchCallback": "isograd.watch.callback",
    "params": "isograd.api",
    "record": "isograd.recording.recorder",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name in _PACKAGES:
        return importlib.import_module(f"isograd.{name}")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What completion offers."""
    return sorted({*globals(), *__all__})
