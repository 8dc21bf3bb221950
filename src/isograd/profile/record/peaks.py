"""The machine's peak: the fastest of some matrix products and copies."""

from __future__ import annotations

import time
from collections.abc import Callable

from isograd.profile.model import Peaks

#: Larger than the last cache of a core's share, so that the copy is one of memory.
COPIED_BYTES = 64 << 20
#: Not every machine has arithmetic of its own for float64: this takes half a second at most.
SIDE_IN_FLOAT64 = 768
LEAST_RUNS, MOST_RUNS, BUDGET_S = 3, 30, 0.3


def measured_peaks(
    side: int,
    multiply: Callable[[], object],
    copy: Callable[[], object],
    settle: Callable[[], None],
) -> Peaks:
    """What this machine reaches now; other work beside it makes the peak too low.

    multiply: a product of two matrices of this side. copy: of COPIED_BYTES. settle: waits until
    the device has done it.
    """
    copy_s = _fastest_s(copy, settle)
    return Peaks(
        flops_per_s=product_rate(side, multiply, settle),
        bytes_per_s=2.0 * COPIED_BYTES / copy_s,
        source="measured by a float32 matrix product and a copy",
    )


def product_rate(side: int, multiply: Callable[[], object], settle: Callable[[], None]) -> float:
    """Operations per second of a product of two matrices of this side."""
    return 2.0 * side**3 / _fastest_s(multiply, settle)


def _fastest_s(run: Callable[[], object], settle: Callable[[], None]) -> float:
    best, begin, runs = float("inf"), time.perf_counter(), 0
    run()
    settle()
    while runs < MOST_RUNS and (runs < LEAST_RUNS or time.perf_counter() - begin < BUDGET_S):
        start = time.perf_counter()
        run()
        settle()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return max(best, 1e-9)
