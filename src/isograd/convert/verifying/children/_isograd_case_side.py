"""Finds a builder where its side of a case lives, and notes how far that came.

Copied beside a case; `reference_side.py` and `port_side.py` import it and have their settings in
JSON beside them.  It runs in a worker's process and needs numpy alone.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


class _Packages(importlib.abc.MetaPathFinder):
    """Packages by the folder they lie in, and names that must not be imported."""

    def __init__(self, folders: dict[str, str], forbidden: Sequence[str]) -> None:
        self._folders = folders
        self._forbidden = frozenset(forbidden)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] in self._forbidden:
            raise ModuleNotFoundError(
                f"{fullname} must not be imported on this side", name=fullname
            )
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        file = Path(folder) / "__init__.py"
        if not file.is_file():
            found = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            found.submodule_search_locations = [folder]
            return found
        return importlib.util.spec_from_file_location(
            fullname, file, submodule_search_locations=[folder]
        )


class Side:
    """One side of a case: its settings, its builder, and the notes beside the case."""

    def __init__(self, file: str) -> None:
        self._notes = Path(file).with_suffix(".notes.json")
        self.settings = json.loads(Path(file).with_suffix(".json").read_text(encoding="utf-8"))
        finder = _Packages(self.settings["packages"], self.settings["forbidden"])
        sys.meta_path.insert(0, finder)
        sys.path[:0] = self.settings["search"]
        self._known: dict[str, Any] = {"imported": False, "built": False, "files": []}
        self._note()
        # Kept, because what a prelude registers may live only as long as its names.
        self._preludes = [runpy.run_path(prelude) for prelude in self.settings["preludes"]]
        self.builder = self._find()
        self._note(imported=True)

    def _find(self) -> Callable[..., Any]:
        target: Any = importlib.import_module(self.settings["module"])
        for part in self.settings["name"].split("."):
            target = getattr(target, part)
        found: Callable[..., Any] = target
        return found

    def build(self) -> Any:
        """The network; what was imported for it is noted."""
        made = self.builder(**ast.literal_eval(self.settings["arguments"]))
        self._note(built=True)
        return made

    def _note(self, **known: Any) -> None:
        self._known.update(known)
        roots = [*self.settings["search"], *self.settings["packages"].values()]
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        self._known["files"] = sorted(
            file for file in files if file and any(_within(file, root) for root in roots)
        )
        self._notes.write_text(json.dumps(self._known), encoding="utf-8")


def _within(file: str, root: str) -> bool:
    return file.startswith(root.rstrip("/") + "/") or file == root


def floating(value: Any, is_tensor: Callable[[Any], bool]) -> list[Any]:
    """The tensors of a nested result, in order: tuples, lists, dictionaries and dataclasses.

    MindSpore's compiler reads it: one loop at a time, and a list that is made anew.
    """
    if is_tensor(value):
        return [value]
    if isinstance(value, dict):
        parts: Sequence[Any] = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = value
    elif hasattr(value, "__dataclass_fields__"):
        parts = [getattr(value, name) for name in value.__dataclass_fields__]
    else:
        return []
    found: list[Any] = []
    for part in parts:
        found = found + floating(part, is_tensor)
    return found


def weights(count: int) -> Any:
    """Uneven weights: without them the loss after a normalisation would be a constant."""
    return (1.0 + 0.5 * np.sin(np.arange(count))).astype(np.float32)
