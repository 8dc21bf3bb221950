"""The user's source line that is running now."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from types import FrameType

_OWN = str(Path(__file__).resolve().parents[1])
_LIBRARIES = ("torch", "mindspore", "mindone", "lightning", "numpy")
_MOST_FRAMES = 120


def user_line(depth: int = 1, stop: str = "") -> str:
    """`file:line` of the innermost frame outside of isograd and the frameworks; empty if none.

    depth: frames to leave out; stop: a file at which the search ends.
    """
    frame: FrameType | None = sys._getframe(depth)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return ""
        name = frame.f_code.co_filename
        if stop and name == stop:
            return ""
        if not is_library(name):
            return f"{shown(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a file belongs to isograd, a framework, or Python itself."""
    if filename.startswith((_OWN, "<")):
        return True
    parts = Path(filename).parts
    if "site-packages" in parts:
        at = parts.index("site-packages")
        return at + 1 < len(parts) and parts[at + 1] in _LIBRARIES
    return "lib" in parts and any(p.startswith("python3") for p in parts) and _is_standard(filename)


def _is_standard(filename: str) -> bool:
    return filename.startswith((sys.base_prefix + "/lib/python", sys.prefix + "/lib/python"))


@lru_cache(maxsize=4096)
def shown(filename: str) -> str:
    """A file's name as a person would type it: relative to the working folder where it is below."""
    try:
        return str(Path(filename).relative_to(Path.cwd()))
    except ValueError:
        return filename
