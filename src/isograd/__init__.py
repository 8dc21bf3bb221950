"""isograd proves that a MindSpore port of a PyTorch network is the same network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isograd.version import __version__

if TYPE_CHECKING:
    from isograd.recording.reader import Recording
    from isograd.recording.recorder import record

__all__ = ["Recording", "__version__", "record"]


def __getattr__(name: str) -> Any:
    """Load the recorder and the reader when they are first used."""
    if name == "record":
        from isograd.recording.recorder import record

        return record
    if name == "Recording":
        from isograd.recording.reader import Recording

        return Recording
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
