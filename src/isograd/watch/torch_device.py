"""Statistics of tensors that lie on a device: measured there, and fetched together.

The numbers are those of `looks.py`; copying each tensor to the host first would take longer than
the training's step does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.looks import SAMPLE

#: Numbers of a tensor: those of `looks.extended_row`.
WIDTH = 9


def is_elsewhere(tensor: torch.Tensor) -> bool:
    """Whether a tensor is measured on its device: dense numbers that the host does not hold."""
    is_number = tensor.is_floating_point() or tensor.is_complex()
    return is_number and not tensor.is_cpu and tensor.layout is torch.strided and tensor.numel() > 0


def sample_of(tensor: torch.Tensor) -> torch.Tensor:
    """At most `SAMPLE` elements at even distances, as a copy: shape (sample,), float64."""
    flat = _plain(tensor).reshape(-1)
    return flat[:: max(1, -(-flat.numel() // SAMPLE))].double().clone()


def row_of(tensor: torch.Tensor) -> torch.Tensor:
    """(count, NaN, infinities, min, max, mean, |mean|, norm, zeros), as `looks.extended_row`.

    tensor: any shape, real or complex.
    returns: shape (9,), float64, on the tensor's device.
    """
    flat = _plain(tensor).reshape(-1)
    is_finite = torch.isfinite(flat)
    count, finite = flat.numel(), is_finite.sum()
    nans = torch.isnan(flat).sum()
    some = flat[is_finite.to(torch.uint8).argmax()]
    low, high = torch.aminmax(torch.where(is_finite, flat, some))
    kept = torch.where(is_finite, flat, torch.zeros((), dtype=flat.dtype, device=flat.device))
    mean = kept.sum(dtype=torch.float64) / finite
    norm = torch.linalg.vector_norm(kept, dtype=torch.float64)
    sample = sample_of(flat)
    is_known = torch.isfinite(sample)
    magnitude = torch.where(is_known, sample.abs(), 0.0).sum() / is_known.sum()
    zeros = (sample == 0).double().mean()
    numbers = (nans, count - finite - nans, low, high, mean, magnitude, norm, zeros)
    found = torch.stack([number.double() for number in numbers])
    nothing = torch.full_like(found, math.nan)
    # Without a finite element there are no extremes and no mean, and the norm is 0.
    has_mean = torch.tensor([1, 1, 0, 0, 0, 0, 1, 1], dtype=torch.bool, device=found.device)
    found = torch.where(has_mean | (finite > 0), found, nothing)
    return torch.cat((found.new_full((1,), float(count)), found))


def dead_share(tensor: torch.Tensor) -> torch.Tensor:
    """The share of channels that are zero throughout, as `looks.dead_share`: shape (), float64."""
    values = tensor.detach()
    if values.ndim < 2:
        return torch.full((), math.nan, dtype=torch.float64, device=values.device)
    shares = []
    for axis in {2: (1,), 3: (1, 2)}.get(values.ndim, (1,)):
        others = [a for a in range(values.ndim) if a != axis]
        shares.append((~values.any(dim=others)).double().mean())
    return torch.stack(shares).min()


def inside_share(tensor: torch.Tensor, borders: tuple[float, float]) -> torch.Tensor:
    """The share of elements strictly between two borders: shape (), float64."""
    sample = sample_of(tensor)
    low, high = borders
    return ((sample > low) & (sample < high)).double().mean()


def change_of(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """(update ratio, whether nothing changed), as `looks.change_of`.

    before, after: samples of one parameter, shape (sample,), float64.
    returns: shape (2,), float64.
    """
    size = before.abs().mean()
    ratio = torch.where(size > 0.0, (after - before).abs().mean() / (size + 1e-9), math.nan)
    return torch.stack((ratio, (after == before).all().double()))


def landed(rows: Sequence[list[float] | torch.Tensor]) -> list[list[float]]:
    """Rows on the host, in their order: one transfer for each device and length."""
    found: list[list[float]] = [row if isinstance(row, list) else [] for row in rows]
    waiting: dict[tuple[torch.device, int], list[tuple[int, torch.Tensor]]] = {}
    for at, row in enumerate(rows):
        if isinstance(row, torch.Tensor):
            waiting.setdefault((row.device, row.numel()), []).append((at, row))
    for group in waiting.values():
        values = torch.stack([row for _, row in group]).tolist()
        for (at, _), value in zip(group, values, strict=True):
            found[at] = value
    return found


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Numbers that sums may be taken of: magnitudes of complex ones, float32 of halves."""
    values = tensor.detach()
    if values.is_complex():
        return values.abs()
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
