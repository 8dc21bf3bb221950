"""Torch's functions and modules written with MindSpore's, for ports to copy.

They need mindspore and what it installs (numpy, and scipy inside a few functions), follow torch's
names, arguments and dtypes, and are executed against torch by `python -m isograd.knowledge check`.
Every file's definitions are public here by their names, which are unique over the files; a file is
imported when one of its names is asked for.
"""

import ast
import importlib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def homes() -> dict[str, str]:
    """The file, without its suffix, that defines each name of this package."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem == "__init__":
            continue
        found.update(dict.fromkeys(defined_in(path), path.stem))
    return found


def defined_in(path: Path) -> list[str]:
    """The names that the top level of a file defines."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [name for node in body for name in _defined(node)]


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]


def __getattr__(name: str) -> Any:
    """A runtime function or layer; raises AttributeError for a name that no file defines."""
    if name.startswith("_") or name not in homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{homes()[name]}"), name)
