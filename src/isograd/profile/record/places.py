"""Which frame of a Python stack is the user's own code, and what its line calls."""

from __future__ import annotations

import ast
import gc
import linecache
import os
import site
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

_OWN = str(Path(__file__).resolve().parents[2]) + os.sep


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    paths = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= set(site.getsitepackages())
    return tuple(str(Path(path)) + os.sep for path in paths)


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file belongs to the user: not to Python, a package, or isograd."""
    if file.startswith(("<", _OWN)):
        return False
    return not file.startswith(_libraries()) and "site-packages" not in file


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code, or None."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def lines_of_threads() -> dict[int, tuple[CodeType, int]]:
    """The user's own line of each thread that has one: its code and line number, by thread ident.

    Python 3.11 collects garbage where a frame object is made, also by `f_back`. A collector's
    callback or a finalizer lets the other thread go on, its frames go away, and reading them ends
    the process (https://github.com/python/cpython/issues/106883 has the same for
    `_current_frames`, mended there). So nothing is collected while the stacks are read, and
    nothing here gives the interpreter's lock away.
    """
    _libraries()  # asks the file system, once
    found = {}
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        for ident, frame in sys._current_frames().items():
            user = users_frame(frame)
            if user is not None:
                # What Python adds to a function has no line: that of its first is next to it.
                found[ident] = user.f_code, user.f_lineno or user.f_code.co_firstlineno
    finally:
        if is_collecting:
            gc.enable()
    return found


def place_of(frame: FrameType) -> str:
    """`file.py:line`, relative to the current folder where it lies below."""
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno}"


@lru_cache(maxsize=4096)
def shown_path(file: str) -> str:
    """A path relative to the current folder where it lies below it."""
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


@lru_cache(maxsize=4096)
def calls_on_line(file: str, line: int) -> tuple[str, ...]:
    """Names that a line of source calls, in order, from its syntax."""
    names = []
    for node in _calls(file):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else None
            if isinstance(function, ast.Name):
                name = function.id
            if name is not None and name not in names:
                names.append(name)
    return tuple(names)


@lru_cache(maxsize=256)
def _calls(file: str) -> tuple[ast.Call, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call))
