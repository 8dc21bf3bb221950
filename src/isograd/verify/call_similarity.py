"""How alike two calls' recorded results are, to tell apart calls that only order would pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from isograd.frameworks.base import CallInfo
from isograd.metrics import relative_gap
from isograd.verify.session import Session
from isograd.worker.protocols import Passes

_MOST_ELEMENTS = 1 << 22


def call_similarity(
    session: Session, reference: tuple[CallInfo, ...], port: tuple[CallInfo, ...]
) -> Callable[[int, int], float]:
    """A function of two call indices: relative difference of their first outputs, 0 is equal."""

    @lru_cache(maxsize=4096)
    def output(side: str, call: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
        worker = session.reference if side == "reference" else session.port
        value = worker.ask(Passes.recorded, call).get("output.0")
        if value is None or value.values.size > _MOST_ELEMENTS:
            return None
        return np.asarray(value.values, np.float64)

    @lru_cache(maxsize=65536)
    def distance(first: int, second: int) -> float:
        if reference[first].output_shapes != port[second].output_shapes:
            return 1.0
        ours, theirs = output("reference", first), output("port", second)
        if ours is None or theirs is None or not ours.size:
            return 1.0
        gap = relative_gap(ours, theirs)
        return gap if math.isfinite(gap) else 1.0

    return distance
