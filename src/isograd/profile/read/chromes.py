"""Chrome traces as profiles: which framework and device wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.errors import UsageError
from isograd.profile.model import Profile

if TYPE_CHECKING:
    from isograd.profile.read.chrome import ChromeTrace

Advance = Callable[[int, int], None]

_TORCH = ("aten::", "torch::", "autograd::", "ProfilerStep#", "Optimizer.")
_GPU = ("kernel", "gpu_memcpy", "cuda_runtime")


def trace(path: Path, advance: Advance | None = None) -> Profile:
    """Any Chrome trace; its intervals, its memory, and who wrote it."""
    try:
        from isograd.profile.read.chrome import read_chrome
    except ImportError as error:
        raise UsageError(
            "msgspec, which reads traces, is not installed",
            "Install it: pip install 'isograd[profile]'.",
        ) from error
    found = read_chrome(path, advance)
    return Profile(
        source=str(path),
        framework=_framework(found),
        device=_device(found),
        spans=found.spans,
        memory=found.memory,
        notes=found.notes,
        base_ns=found.base_ns,
    )


def _framework(found: ChromeTrace) -> str:
    if any(text.startswith(_TORCH) for text in found.spans.texts):
        return "torch"
    names = {track.process for track in found.spans.tracks}
    if names & {"CPU OP", "MindSpore", "Scope Layer", "Ascend Hardware"}:
        return "mindspore"
    return "mindspore" if "timeline_display" in str(found) else ""


def _device(found: ChromeTrace) -> str:
    if any(text in _GPU for text in found.spans.texts):
        return "GPU"
    if any(track.is_device for track in found.spans.tracks):
        return "Ascend"
    return "CPU"
