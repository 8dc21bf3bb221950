"""All hypotheses, found in the folder `hypotheses`: a new file there is all that it takes."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from isograd.diagnose import hypotheses
from isograd.diagnose.hypothesis import FunctionHypothesis


@functools.cache
def all_hypotheses() -> dict[str, FunctionHypothesis]:
    """Every hypothesis by its name; raises ValueError where two share one."""
    found: dict[str, FunctionHypothesis] = {}
    for info in sorted(pkgutil.iter_modules(hypotheses.__path__), key=lambda i: i.name):
        module = importlib.import_module(f"{hypotheses.__name__}.{info.name}")
        for one in getattr(module, "HYPOTHESES", ()):
            if one.name in found:
                raise ValueError(f"two hypotheses are named {one.name}")
            found[one.name] = one
    return found
