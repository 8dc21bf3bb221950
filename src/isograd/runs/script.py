"""Runs a user's script unchanged in this process, and says when a framework has been imported.

Who observes installs its hooks on the framework's own classes at that moment, before the script
goes on; models and optimizers are known by what they are and never by their names.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from isograd.errors import UsageError

FRAMEWORKS = ("torch", "mindspore")


@dataclass(frozen=True)
class ScriptEnd:
    """How a script ended.

    status: its exit status; error: what it raised, SystemExit left out; trace: the traceback
    without isograd's own lines.
    """

    status: int
    error: BaseException | None = None
    trace: str = ""


def run_script(
    script: Path, arguments: Sequence[str], on_import: Callable[[str], None]
) -> ScriptEnd:
    """Run a script as `python script.py arguments` would; UsageError where there is none.

    on_import: called with `torch` or `mindspore`, once each, as soon as it has been imported.
    """
    if not script.is_file():
        wrong = "is no file" if script.exists() else "does not exist"
        raise UsageError(f"the script {script} {wrong}", "Give the path of a Python file.")
    with _as_main(script, arguments), _import_hook(on_import):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            return ScriptEnd(_status(end.code))
        except KeyboardInterrupt as error:
            return ScriptEnd(130, error, _trace(error))
        except BaseException as error:
            return ScriptEnd(1, error, _trace(error))
    return ScriptEnd(0)


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return 1


def _trace(error: BaseException) -> str:
    """The traceback from the script's first line on."""
    frames = traceback.extract_tb(error.__traceback__)
    own = {__file__, runpy.__file__}
    kept = [f for f in frames if f.filename not in own and not f.filename.startswith("<frozen")]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(kept)]
    return "".join(lines + traceback.format_exception_only(type(error), error))


@contextmanager
def _as_main(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, path = sys.argv, sys.path
    sys.argv = [str(script), *arguments]
    sys.path = [str(script.resolve().parent), *path]
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path


@contextmanager
def _import_hook(on_import: Callable[[str], None]) -> Iterator[None]:
    for name in FRAMEWORKS:
        if name in sys.modules:
            on_import(name)
    finder = _Finder(on_import)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: wraps the loader that the other finders give for a framework."""

    def __init__(self, on_import: Callable[[str], None]) -> None:
        self._on_import = on_import
        self._pending = set(FRAMEWORKS) - set(sys.modules)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._pending:
            return None
        self._pending.discard(fullname)
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self._on_import)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads as the original loader does, then reports."""

    def __init__(self, original: Any, on_import: Callable[[str], None]) -> None:
        self._original = original
        self._on_import = on_import

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._original.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._original
        self._original.exec_module(module)
        self._on_import(module.__name__)
