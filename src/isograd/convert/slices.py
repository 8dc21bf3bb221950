"""Slices of tensors that MindSpore's own cannot do; copied into the ports that use them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253


def strided(x: Any, index: Any) -> Any:
    """`x[index]` with steps along inner or several axes, whose gradient MindSpore's own refuse."""
    parts = list(index)
    known = all(part is None or part is ... or isinstance(part, (int, slice)) for part in parts)
    if not isinstance(x, ms.Tensor) or not known:
        return x[index]
    if ... in parts:
        at = parts.index(...)
        missing = x.ndim - sum(part is not None and part is not ... for part in parts)
        parts[at : at + 1] = [slice(None)] * missing
    plain, steps, source, axis = [], [], 0, 0
    for part in parts:
        is_stepped = isinstance(part, slice) and part.step not in (None, 1)
        if is_stepped:
            steps.append((axis, np.arange(*part.indices(x.shape[source]))))
        plain.append(slice(None) if is_stepped else part)
        source += part is not None
        axis += not isinstance(part, int)
    if any(part != slice(None) for part in plain):
        x = x[tuple(plain)]
    for axis, positions in steps:
        x = ops.gather(x, ms.Tensor(positions.astype(np.int32)), axis)
    return x
