"""How a tensor of the reference lies in the port: the same, with permuted axes, or reshaped.

A hand porter may work with (sequence, batch) where the reference has (batch, sequence), or on
flattened tokens.  A layout turns reference tensors into the port's and back.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from isograd.tensors import Array

_MOST_AXES = 5


@dataclass(frozen=True)
class Layout:
    """Permute the axes (None: keep them), then reshape to the port's shape."""

    reference_shape: tuple[int, ...]
    port_shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None

    def to_port(self, values: Array) -> Array:
        """A reference tensor as the port holds it.

        values: the reference's shape, any dtype.
        returns: the port's shape, the same dtype.
        """
        moved = values if self.axes is None else np.transpose(values, self.axes)
        return np.ascontiguousarray(moved).reshape(self.port_shape)

    def to_reference(self, values: Array) -> Array:
        """A port tensor as the reference holds it.

        values: the port's shape, any dtype.
        returns: the reference's shape, the same dtype.
        """
        if self.axes is None:
            return np.ascontiguousarray(values).reshape(self.reference_shape)
        moved = [self.reference_shape[a] for a in self.axes]
        back = np.argsort(self.axes)
        return np.ascontiguousarray(np.transpose(values.reshape(moved), back))


def find_layout(
    reference_shape: tuple[int, ...],
    port_shape: tuple[int, ...],
    reference: Array | None = None,
    port: Array | None = None,
) -> Layout | None:
    """The layout between two shapes; recorded values decide where shapes leave a choice.

    None where no permutation and no reshaping fits.

    reference, port: the recorded values: the two shapes, any dtypes; None where there are none.
    """
    if reference_shape == port_shape:
        return Layout(reference_shape, port_shape)
    if math.prod(reference_shape) != math.prod(port_shape):
        return None
    candidates = [Layout(reference_shape, port_shape)]
    if 2 <= len(reference_shape) <= _MOST_AXES:
        for axes in itertools.permutations(range(len(reference_shape))):
            moved = tuple(reference_shape[a] for a in axes)
            if _squeezed(moved) == _squeezed(port_shape) and axes != tuple(range(len(axes))):
                candidates.append(Layout(reference_shape, port_shape, axes))
    if reference is None or port is None or reference.size == 0 or len(candidates) == 1:
        same = [c for c in candidates if c.axes is not None]
        return same[0] if same and len(reference_shape) == len(port_shape) else candidates[0]
    return min(candidates, key=lambda c: _distance(c.to_port(reference), port))


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _distance(first: Array, second: Array) -> float:
    with np.errstate(all="ignore"):
        gap = first.astype(np.float64) - second.astype(np.float64)
        return float(np.nansum(np.abs(gap)))


def match_slots(reference: list[Array], port: list[Array]) -> list[tuple[int, int, Layout]]:
    """Pair the tensors of a call's two sides: in their order, then any that fits.

    Where the sizes disagree (an earlier layer of the port has the wrong stride), tensors of equal
    position and number of axes are paired as they are.

    reference, port: any shapes and dtypes.
    """
    pairs = _in_order(reference, port)
    free = [i for i in range(len(reference)) if all(i != pair[0] for pair in pairs)]
    for j in range(len(port)):
        if any(j == pair[1] for pair in pairs):
            continue
        fitting = ((i, _fit(reference[i], port[j])) for i in free)
        found = next(((i, layout) for i, layout in fitting if layout is not None), None)
        if found is None and j in free and _same_kind(reference[j], port[j]):
            if reference[j].ndim == port[j].ndim:
                found = (j, Layout(reference[j].shape, reference[j].shape))
        if found is not None:
            pairs.append((found[0], j, found[1]))
            free.remove(found[0])
    return sorted(pairs, key=lambda pair: pair[:2])


def _in_order(reference: list[Array], port: list[Array]) -> list[tuple[int, int, Layout]]:
    """The most pairs that fit and do not cross, of equal position where that is open.

    So the port may lack some tensors of the reference, and take some more.
    """
    same = [(i, i, _fit(*both)) for i, both in enumerate(zip(reference, port, strict=False))]
    whole = [(i, j, layout) for i, j, layout in same if layout is not None]
    if len(whole) == len(reference) == len(port):
        return whole
    best: dict[tuple[int, int], tuple[int, int]] = {}
    fits: dict[tuple[int, int], Layout] = {}
    for i, j in itertools.product(reversed(range(len(reference))), reversed(range(len(port)))):
        most = max(best.get((i + 1, j), (0, 0)), best.get((i, j + 1), (0, 0)))
        layout = _fit(reference[i], port[j])
        if layout is not None:
            fits[i, j] = layout
            count, placed = best.get((i + 1, j + 1), (0, 0))
            most = max(most, (count + 1, placed + (i == j)))
        best[i, j] = most
    pairs = []
    i = j = 0
    while i < len(reference) and j < len(port):
        count, placed = best.get((i + 1, j + 1), (0, 0))
        if (i, j) in fits and best[i, j] == (count + 1, placed + (i == j)):
            pairs.append((i, j, fits[i, j]))
            i, j = i + 1, j + 1
        elif best[i, j] == best.get((i + 1, j), (0, 0)):
            i += 1
        else:
            j += 1
    return pairs


def _fit(reference: Array, port: Array) -> Layout | None:
    if not _same_kind(reference, port):
        return None
    return find_layout(reference.shape, port.shape, reference, port)


def _same_kind(first: Array, second: Array) -> bool:
    return np.issubdtype(first.dtype, np.floating) == np.issubdtype(second.dtype, np.floating)
