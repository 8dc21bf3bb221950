"""Statistics of tensors that lie on a device: few kernels for each, fetched together.

Copying each tensor to the host would take longer than the training's step does, and so would the
many small operators of all its statistics. So the device computes extremes, sum and norm and takes
the sample; the host computes the rest of the sample, as `looks.py` does for its own tensors.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.looks import SAMPLE, Numbers, extended_row, sampled_row

#: float32 squares may overflow from here on, and underflow below.
_LARGE, _SMALL = 1e18, 1e-18


@dataclass(frozen=True)
class Measured:
    """A tensor as it was measured on its device; nothing of it has been fetched.

    numbers: minimum, maximum, sum, norm, each of shape (). sample: shape (sample,). alive: for
    each axis of channels, which of them are not zero throughout. source: the tensor.
    """

    numbers: tuple[torch.Tensor, ...]
    sample: torch.Tensor
    alive: tuple[torch.Tensor, ...]
    source: weakref.ref[torch.Tensor]
    count: int


@dataclass(frozen=True)
class Fetched:
    """What was measured, on the host. row: as of `looks.extended_row`; dead: `looks.dead_share`."""

    row: list[float]
    sample: Numbers
    dead: float


def is_elsewhere(tensor: torch.Tensor) -> bool:
    """Whether a tensor is measured on its device: dense numbers that the host does not hold."""
    is_held = tensor.is_cpu or tensor.layout is not torch.strided
    return tensor.is_floating_point() and not is_held and tensor.numel() > 0


def measure(tensor: torch.Tensor, *, wants_dead: bool = False) -> Measured:
    """Measure without waiting for the device.

    tensor: any shape with elements, any float dtype.
    """
    values = tensor.detach()
    flat = values.reshape(-1)
    low, high = torch.aminmax(flat)
    is_half = flat.dtype in (torch.bfloat16, torch.float16)
    wide = torch.float32 if flat.device.type == "mps" else torch.float64  # Apple's has no float64
    norm = torch.linalg.vector_norm(flat, dtype=torch.float32 if is_half else None)
    axes = {0: (), 1: (), 2: (1,), 3: (1, 2)}.get(values.ndim, (1,)) if wants_dead else ()
    alive = tuple(values.any(dim=[a for a in range(values.ndim) if a != axis]) for axis in axes)
    return Measured(
        (low, high, flat.sum(dtype=wide), norm),
        _sample(flat),
        alive,
        weakref.ref(tensor),
        flat.numel(),
    )


def fetch(measured: Sequence[Measured]) -> list[Fetched]:
    """Everything that was measured: one transfer for each device and dtype."""
    vectors = [
        part
        for one in measured
        for part in (*(n.reshape(1) for n in one.numbers), one.sample, *one.alive)
    ]
    parts = iter(_landed(vectors))
    found = []
    for one in measured:
        numbers = [float(next(parts)[0]) for _ in one.numbers]
        sample = next(parts)
        shares = [1.0 - float(next(parts).mean()) for _ in one.alive]
        row = _row(one, numbers, sample)
        found.append(Fetched(row, sample, min(shares, default=math.nan)))
    return found


def fetch_samples(tensors: Sequence[torch.Tensor]) -> list[Numbers]:
    """The sample of each tensor."""
    return _landed([_sample(tensor.detach().reshape(-1)) for tensor in tensors])


def _sample(flat: torch.Tensor) -> torch.Tensor:
    taken = flat[:: max(1, -(-flat.numel() // SAMPLE))]
    is_half = flat.dtype in (torch.bfloat16, torch.float16)
    return taken.float() if is_half else taken.clone()


def _landed(vectors: Sequence[torch.Tensor]) -> list[Numbers]:
    found: list[Numbers] = [np.empty(0)] * len(vectors)
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for at, vector in enumerate(vectors):
        groups.setdefault((vector.device, vector.dtype), []).append(at)
    for (_, dtype), places in groups.items():
        joined = torch.cat([vectors[at] for at in places])
        # NumPy has no bfloat16.
        whole = (joined.float() if dtype is torch.bfloat16 else joined).cpu().numpy()
        ends = np.cumsum([vectors[at].numel() for at in places])
        for at, part in zip(places, np.split(whole, ends[:-1]), strict=True):
            found[at] = part
    return found


def _row(one: Measured, numbers: list[float], sample: Numbers) -> list[float]:
    """The row of a tensor; one that is not finite is measured again while it is there."""
    low, high, total, norm = numbers
    largest = max(abs(low), abs(high))
    if math.isfinite(largest) and (largest == 0.0 or _SMALL < largest < _LARGE):
        return sampled_row((one.count, 0.0, 0.0, low, high, total / one.count, norm), sample)
    tensor = one.source()
    values = sample if tensor is None else tensor.detach().reshape(-1).double().cpu().numpy()
    return _again(values.astype(np.float64), one.count)


def _again(values: Numbers, count: int) -> list[float]:
    """The careful row; of a tensor that is gone, by its sample.

    values: shape (elements,), float64.
    """
    row, share = extended_row(values), count / max(values.size, 1)
    count_of_each = [float(count), row[1] * share, row[2] * share]
    return [*count_of_each, *row[3:7], row[7] * math.sqrt(share), row[8]]
