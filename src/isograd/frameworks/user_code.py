"""Importing the callables that a case names, and saying clearly where they fail.

A callable is ``file.py:name`` (relative to the case's folder) or ``package.module:name``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from isograd.errors import CaseError, IsogradError, UserCodeError

#: MindSpore appends the C++ place; it is for its own developers.
_CPP_STACK = re.compile(r" -{8,} - C\+\+ Call Stack")

_HERE = str(Path(__file__).resolve().parent.parent)


def load_callable(reference: str, folder: str, what: str) -> Callable[..., Any]:
    """Import the callable that a case names; `what` is its key in the case, for messages."""
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise CaseError(
            f"{what} = {reference!r} is not a callable's name",
            "Write it as 'file.py:name' or 'package.module:name'.",
        )
    with user_code(f"importing {what} {reference!r}"), _without_bytecode():
        is_file = place.endswith(".py")
        target: Any = _import_file(place, folder, what) if is_file else _import(place, folder)
        for part in name.split("."):
            if not hasattr(target, part):
                raise CaseError(
                    f"{what} = {reference!r}: there is no {part!r} in {place}",
                    f"It defines: {', '.join(_public_names(target)) or 'nothing callable'}.",
                )
            target = getattr(target, part)
    if not callable(target):
        raise CaseError(
            f"{what} = {reference!r} is a {type(target).__name__}, not a callable",
            "Name a function or a class.",
        )
    found: Callable[..., Any] = target
    return found


def _public_names(module: Any) -> list[str]:
    names = [n for n, v in vars(module).items() if not n.startswith("_") and callable(v)]
    return sorted(names)[:12]


def _import_file(place: str, folder: str, what: str) -> Any:
    path = (Path(folder) / place).resolve()
    if not path.is_file():
        raise CaseError(f"{what} names the file {path}, which does not exist", "Correct the path.")
    for entry in (str(path.parent), folder):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    unique = f"isograd_case_{path.stem}_{digest}"
    if unique in sys.modules:
        return sys.modules[unique]
    loader = _FromSource(unique, str(path))
    spec = importlib.util.spec_from_file_location(unique, path, loader=loader)
    if spec is None or spec.loader is None:
        raise CaseError(f"{what}: {path} cannot be imported", "Name a Python source file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


class _FromSource(SourceFileLoader):
    """Reads the file as it is now.

    Python compares its cached bytecode with a file by second and size alone, so that a port that is
    changed twice within a second might be verified as it was.
    """

    def get_code(self, fullname: str) -> CodeType:
        """The compiled source."""
        return self.source_to_code(self.get_data(self.path), self.path)


@contextlib.contextmanager
def _without_bytecode() -> Iterator[None]:
    """Leave no bytecode of the user's files behind, which the next process would take."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _import(place: str, folder: str) -> Any:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(place)


def _nothing_more(_: str) -> str:
    return ""


@contextlib.contextmanager
def user_code(doing: str, advice_for: Callable[[str], str] = _nothing_more) -> Iterator[None]:
    """Turn what the user's code raises into a `UserCodeError` that names the line.

    advice_for: what to do by what was raised; empty where nothing better is known than to run it.
    """
    try:
        yield
    except IsogradError:
        raise
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        said = _CPP_STACK.split(" ".join(str(error).split()))[0][:600]
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
        trace = "".join(traceback.format_list(frames)) + text
        raise UserCodeError(
            f"{doing} raised {text}{place}",
            advice_for(said) or "Run it on its own, mend it, and start isograd again.",
            trace,
        ) from error


def _is_users(filename: str) -> bool:
    if filename.startswith(("<", _HERE)):
        return False
    installed = ("/site-packages/", "/dist-packages/", "/lib/python")
    return not any(part in filename for part in installed)
