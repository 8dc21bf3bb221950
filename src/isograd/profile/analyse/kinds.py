"""What an operator does, by its name: `operators.toml`."""

from __future__ import annotations

import sys
from enum import Enum
from functools import lru_cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Kind(Enum):
    """What an operator mainly does."""

    COMMUNICATION = "communication"
    CONVERSION = "conversion"
    COPY = "copy"
    SYNCHRONISATION = "synchronisation"
    VIEW = "view"
    DENSE = "dense"
    STREAM = "stream"
    COMPUTE = "compute"


#: Kinds that compute nothing: their time is the host's.
ON_HOST = frozenset({Kind.SYNCHRONISATION, Kind.VIEW})
#: Kinds whose time is the time of moving bytes, not of arithmetic.
MOVING = frozenset({Kind.CONVERSION, Kind.COPY, Kind.STREAM})
#: Kinds within which a copy is part of the same move, as `aten::to` calls `aten::copy_`.
MOVES = frozenset({Kind.CONVERSION, Kind.COPY})


@lru_cache(maxsize=1)
def _patterns() -> tuple[dict[str, Kind], tuple[tuple[str, Kind], ...]]:
    text = resources.files("isograd.profile").joinpath("operators.toml").read_text("utf-8")
    exact: dict[str, Kind] = {}
    prefixes: list[tuple[str, Kind]] = []
    for name, patterns in tomllib.loads(text)["kinds"].items():
        for pattern in patterns:
            if pattern.endswith("*"):
                prefixes.append((pattern[:-1], Kind(name)))
            else:
                exact.setdefault(pattern, Kind(name))
    return exact, tuple(prefixes)


@lru_cache(maxsize=65536)
def kind_of(name: str) -> Kind:
    """The kind of an operator; what no list names computes."""
    exact, prefixes = _patterns()
    if name in exact:
        return exact[name]
    return next((kind for prefix, kind in prefixes if name.startswith(prefix)), Kind.COMPUTE)
