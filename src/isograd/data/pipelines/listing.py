"""Transforms that a pipeline lists, described alike for every library.

A list is a Compose of torchvision or albumentations, the operations of MindSpore's maps, or one
callable.  Kinds stand in `transforms.toml`; parameters are the object's own public attributes.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

#: Attributes that say how a library runs a transform, not what it does.
_NOT_PARAMETERS = frozenset(
    "transforms output_type implementation device_target random training c_size "
    "python_multiprocessing always_apply deterministic replay_mode applied_in_replay".split()
)
#: Where MindSpore keeps an argument of a transform under another name.
_RENAMED = {"py_size": "size"}
_SHOWN_PARAMETERS = 8


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    text = Path(__file__).with_name("transforms.toml").read_text("utf-8")
    found: dict[str, dict[str, Any]] = tomllib.loads(text)
    return found


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {name: kind for kind, names in _table()["kinds"].items() for name in names}


def cause_of(kind: str) -> str | None:
    """The cause that transforms of one kind differ by, where nothing more is known."""
    found: str | None = _table()["causes"].get(kind)
    return found


def describe(transform: Any) -> dict[str, Any]:
    """Label, kind, parameters, whether it is random, and where the user wrote it."""
    name = getattr(transform, "__name__", None) or type(transform).__name__
    is_function = inspect.isroutine(transform)
    kind = "function" if is_function else _kinds().get(type(transform).__name__, "other")
    parameters = {} if is_function else _parameters(transform)
    return {
        "label": _label(name, parameters) if not is_function else _function_label(transform),
        "name": name,
        "kind": kind,
        "parameters": parameters,
        "is_random": _is_random(transform, kind),
        "where": _where(transform),
        "library": type(transform).__module__.partition(".")[0],
    }


def _is_random(transform: Any, kind: str) -> bool | None:
    """Whether it draws; None where that has to be measured."""
    if kind.startswith("random_"):
        return True
    found = getattr(transform, "random", None)
    if isinstance(found, bool):
        return found
    return None if kind in ("function", "other") else False


def _parameters(transform: Any) -> dict[str, Any]:
    found = {}
    arguments = _arguments(transform)
    for name, value in vars(transform).items():
        if name.startswith("_") or name in _NOT_PARAMETERS:
            continue
        if arguments is not None and (name not in arguments or (name, value) == ("p", 1)):
            continue
        plain = _plain(value)
        if plain is not None:
            found[_RENAMED.get(name, name)] = plain
    return found


def _arguments(transform: Any) -> frozenset[str] | None:
    """The names of a constructor's arguments where attributes hold more; None where they do not.

    albumentations keeps what it derives beside its arguments, and p=1 where nothing is drawn.
    """
    if not type(transform).__module__.startswith("albumentations"):
        return None
    return frozenset(inspect.signature(type(transform)).parameters)


def _plain(value: Any) -> Any:
    """Numbers, texts and flat lists of them; None for all else."""
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.size <= 16:
        return value.reshape(-1).tolist()
    if isinstance(value, (tuple, list)) and len(value) <= 16:
        parts = [_plain(part) for part in value]
        return None if any(part is None for part in parts) else parts
    return None


def _label(name: str, parameters: dict[str, Any]) -> str:
    shown = [f"{key}={_short(value)}" for key, value in parameters.items()][:_SHOWN_PARAMETERS]
    return f"{name}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(_short(part) for part in value) + "]"
    return str(value)


def _function_label(transform: Callable[..., Any]) -> str:
    name = getattr(transform, "__qualname__", type(transform).__name__)
    return name.rpartition("<locals>.")[2]


def _where(transform: Any) -> str:
    """`file.py:line` of a function or class of the user's; nothing for a library's."""
    target = transform if inspect.isroutine(transform) else type(transform)
    try:
        file = inspect.getsourcefile(target) or ""
        if "site-packages" in file or not file.endswith(".py"):
            return ""
        return f"{Path(file).name}:{inspect.getsourcelines(target)[1]}"
    except (TypeError, OSError):
        return ""


def inner_list(transform: Any) -> list[Any] | None:
    """The transforms of a Compose, in their order; None where it is none."""
    if type(transform).__name__ not in ("Compose", "Sequential"):
        return None
    found = getattr(transform, "transforms", None)
    if found is None and type(transform).__name__ == "Sequential":
        found = list(transform)
    return list(found) if isinstance(found, (list, tuple)) else None


def flattened(transform: Any) -> list[Any]:
    """A transform as a list, with Composes within it opened."""
    found = inner_list(transform)
    if found is None:
        return [transform]
    return [part for one in found for part in flattened(one)]
