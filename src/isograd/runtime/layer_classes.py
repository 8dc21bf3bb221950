"""Questions for classes that make MindSpore's own layers by torch's arguments."""

from __future__ import annotations

import types
from typing import Any


def is_instance(value: Any, kinds: Any) -> bool:
    """`isinstance`, where a class of the port that makes MindSpore's layers means theirs.

    torch's layers are instances of the class that made them; those are none, since the class makes
    MindSpore's by torch's arguments.
    """
    if isinstance(kinds, (tuple, types.UnionType)):
        parts = kinds if isinstance(kinds, tuple) else kinds.__args__
        return any(is_instance(value, kind) for kind in parts)
    return isinstance(value, getattr(kinds, "__dict__", {}).get("_makes", kinds))
