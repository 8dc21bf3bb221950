"""Slices of tensors that MindSpore's own cannot do; copied into the ports that use them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def strided(x: Any, index: Any) -> Any:
    """`x[index]` with steps along inner or several axes, whose gradient MindSpore's own refuse.

    In terms of what the static graph takes: it refuses `part is ...` and a slice's `indices`.
    """
    kinds = (type(None), int, slice, type(...))
    others = [part for part in index if not isinstance(part, kinds)]
    if not isinstance(x, ms.Tensor) or len(others) > 0:
        return x[index]
    taken = [part for part in index if isinstance(part, (int, slice))]
    plain, steps, source, axis = [], [], 0, 0
    for part in index:
        if isinstance(part, type(...)):
            rest = x.ndim - len(taken)
            plain += [slice(None)] * rest
            source, axis = source + rest, axis + rest
            continue
        is_stepped = isinstance(part, slice) and part.step is not None and part.step != 1
        if is_stepped:
            steps.append((axis, positions_of(part.start, part.stop, part.step, x.shape[source])))
        plain.append(slice(None) if is_stepped else part)
        source += int(isinstance(part, (int, slice)))
        axis += int(not isinstance(part, int))
    x = x[tuple(plain)]
    for axis, positions in steps:
        x = ops.gather(x, ms.Tensor(positions, ms.int32), axis)
    return x


def positions_of(start: int | None, stop: int | None, step: int, size: int) -> list[int]:
    """The positions of a slice with a step above 0 along an axis of this size."""
    first = 0 if start is None else start + size if start < 0 else start
    last = size if stop is None else stop + size if stop < 0 else stop
    return list(range(max(first, 0), min(last, size), step))
