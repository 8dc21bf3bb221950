"""What a message costs, from messages that were measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isograd.profile.communication.segments import Affine, Floats


class Measured:
    """Seconds by size, interpolated between measured sizes; never falls with the size."""

    def __init__(self, size_bytes: Floats, seconds: Floats) -> None:
        """Shapes (points,); the median of equal sizes counts."""
        sizes = np.unique(size_bytes)
        medians = np.asarray([np.median(seconds[size_bytes == size]) for size in sizes])
        self.size_bytes = sizes
        self.seconds = np.maximum.accumulate(medians)

    def __call__(self, size_bytes: Floats) -> Floats:
        """Seconds of each size; beyond the largest one along the last slope."""
        inside = np.interp(size_bytes, self.size_bytes, self.seconds)
        if self.size_bytes.size < 2:
            return np.asarray(inside)
        slope = (self.seconds[-1] - self.seconds[-2]) / (self.size_bytes[-1] - self.size_bytes[-2])
        beyond = np.maximum(size_bytes - self.size_bytes[-1], 0.0)
        return np.asarray(inside + beyond * slope)


def fit_affine(size_bytes: npt.ArrayLike, seconds: npt.ArrayLike) -> Affine | None:
    """Least squares of relative errors, a and b at least 0; None with fewer than two sizes."""
    sizes, times = (np.asarray(v, dtype=np.float64) for v in (size_bytes, seconds))
    keep = (times > 0) & (sizes >= 0)
    sizes, times = sizes[keep], times[keep]
    if np.unique(sizes).size < 2:
        return None
    weight = 1.0 / times
    matrix = np.stack([weight, sizes * weight], axis=1)
    (a, b), *_ = np.linalg.lstsq(matrix, np.ones(sizes.size), rcond=None)
    if a < 0:
        a, b = 0.0, float(np.sum(sizes * weight) / np.sum((sizes * weight) ** 2))
    if b < 0:
        a, b = float(np.sum(weight) / np.sum(weight**2)), 0.0
    return Affine(float(a), float(b))
