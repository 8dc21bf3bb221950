"""Which samples are equal, and which images are nearly so, in some 100 bytes a sample.

Exact: 8 bytes of BLAKE2b over the fields that carry content.  Near: the difference hash of an image
(9 × 8 grey values, each bit whether a pixel is brighter than the next: N. Krawetz, "Kind of Like
That", 2013) finds candidates within 3 bits of 64 by its four 16-bit quarters, one of which must
then be equal; an 8 × 8 thumbnail decides, because plain images share hashes without being alike.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.sources.base import Value, as_bytes
from isograd.tensors import Array

#: Bits in which the hashes of near duplicates may differ.
NEAR_BITS = 3
#: Root mean square between thumbnails, as a share of their own deviation, that is still near.
#: JPEG of quality 50 stays below 0.06 and a resize by a factor below 0.05 (benchmarks/data).
NEAR_SHARE = 0.08
#: Thumbnails that vary less than this many grey levels say nothing.
_LEAST_DEVIATION = 6.0
#: Images of one quarter of a hash that are compared pairwise; larger groups are cut.
_MOST_IN_GROUP = 512
_LARGEST_PAIRS = 200_000


class Keys:
    """The keys of samples by their position, in one block of memory."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("Q")

    def append(self, key: str) -> None:
        """Add the key of the next sample."""
        self._text += key.encode("utf-8", errors="surrogateescape")
        self._ends.append(len(self._text))

    def join(self, other: Keys) -> None:
        """Append the keys of another part."""
        start = len(self._text)
        self._text += other._text
        self._ends.extend(end + start for end in other._ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, position: int) -> str:
        start = self._ends[position - 1] if position else 0
        content = bytes(self._text[start : self._ends[position]])
        return content.decode("utf-8", errors="surrogateescape")


class Fingerprints:
    """What is kept of every sample to find equal and nearly equal ones."""

    def __init__(self) -> None:
        self._exact = array("Q")
        self._near = array("Q")
        self._thumbnails = bytearray()
        self._places = array("Q")

    def add(self, contents: Iterable[Value]) -> None:
        """The contents of the next sample."""
        found = hashlib.blake2b(digest_size=8)
        for content in contents:
            found.update(as_bytes(content))
        self._exact.append(int.from_bytes(found.digest(), "little"))

    def add_image(self, position: int, pixels: Array) -> None:
        """The image of the sample at a position; only 8-bit images have hashes.

        pixels: (H, W) or (H, W, C) uint8; an array of another shape or dtype is left out.
        """
        if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or min(pixels.shape[:2]) < 9:
            return
        grey = pixels if pixels.ndim == 2 else pixels[..., 0]
        if pixels.ndim == 3 and pixels.shape[2] >= 3:
            grey = _grey(pixels)
        cells = _cells(grey)
        bits = np.packbits(cells[:, 1:] > cells[:, :-1])
        self._near.append(int.from_bytes(bits.tobytes(), "little"))
        self._thumbnails += cells[:, :8].astype(np.uint8).tobytes()
        self._places.append(position)

    def join(self, other: Fingerprints, shift: int) -> None:
        """Append another part's, whose first sample is at position `shift`."""
        self._exact.extend(other._exact)
        self._near.extend(other._near)
        self._thumbnails += other._thumbnails
        self._places.extend(place + shift for place in other._places)

    def equal(self) -> list[NDArray[np.int64]]:
        """Groups of positions whose contents are equal, in their order.

        Returns arrays of shape (members,), int64.
        """
        return _groups(np.frombuffer(self._exact, np.uint64))

    def near(self) -> list[tuple[int, int]]:
        """Pairs of positions whose images are nearly but not exactly equal."""
        hashes = np.frombuffer(self._near, np.uint64)
        if hashes.size < 2:
            return []
        places = np.frombuffer(self._places, np.uint64).astype(np.int64)
        thumbnails = np.frombuffer(self._thumbnails, np.uint8).reshape(-1, 64)
        exact = np.frombuffer(self._exact, np.uint64)
        found: set[tuple[int, int]] = set()
        for quarter in range(4):
            part = ((hashes >> np.uint64(16 * quarter)) & np.uint64(0xFFFF)).astype(np.uint16)
            order = np.argsort(part, kind="stable")
            bounds = np.flatnonzero(np.diff(part[order])) + 1
            for group in np.split(order, bounds):
                if group.size > 1:
                    found.update(_alike(group[:_MOST_IN_GROUP], hashes, thumbnails))
            if len(found) > _LARGEST_PAIRS:
                break
        pairs = sorted((int(places[a]), int(places[b])) for a, b in found)
        return [(a, b) for a, b in pairs if exact[a] != exact[b]]


def _cells(grey: NDArray[Any]) -> NDArray[np.float32]:
    """The mean grey of 8 × 9 cells."""
    rows, columns = (
        np.arange(count + 1) * extent // count
        for count, extent in zip((8, 9), grey.shape, strict=True)
    )
    sums = np.add.reduceat(grey.astype(np.float32), rows[:-1], axis=0)
    sums = np.add.reduceat(sums, columns[:-1], axis=1)
    areas = np.diff(rows)[:, None] * np.diff(columns)[None, :]
    found: NDArray[np.float32] = sums / areas.astype(np.float32)
    return found


def _grey(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Rec. 601 luma in integers, as Pillow computes it."""
    wide = pixels.astype(np.uint32)
    luma = 19595 * wide[..., 0] + 38470 * wide[..., 1] + 7471 * wide[..., 2] + 0x8000
    grey: NDArray[np.uint8] = (luma >> 16).astype(np.uint8)
    return grey


def _groups(values: NDArray[np.uint64]) -> list[NDArray[np.int64]]:
    order = np.argsort(values, kind="stable")
    if order.size < 2:
        return []
    bounds = np.flatnonzero(np.diff(values[order])) + 1
    sizes = np.diff(np.concatenate(([0], bounds, [order.size])))
    if int(sizes.max()) == 1:
        return []
    starts = np.concatenate(([0], bounds))[sizes > 1]
    found = [
        order[start : start + size] for start, size in zip(starts, sizes[sizes > 1], strict=True)
    ]
    return sorted(found, key=lambda group: int(group[0]))


_BIT_COUNTS = np.asarray([bin(number).count("1") for number in range(256)], np.uint8)


def _alike(
    group: NDArray[np.int64], hashes: NDArray[np.uint64], thumbnails: Array
) -> list[tuple[int, int]]:
    """Pairs within a group whose hashes and thumbnails are near."""
    own = hashes[group]
    distance = _BIT_COUNTS[(own[:, None] ^ own[None, :]).view(np.uint8)].reshape(
        len(group), len(group), 8
    )
    rows, columns = np.nonzero(np.triu(distance.sum(axis=2, dtype=np.uint16) <= NEAR_BITS, 1))
    if not rows.size:
        return []
    first = thumbnails[group[rows]].astype(np.float32)
    second = thumbnails[group[columns]].astype(np.float32)
    apart = np.sqrt(np.mean((first - second) ** 2, axis=1))
    spread = np.minimum(first.std(axis=1), second.std(axis=1))
    is_near = (spread > _LEAST_DEVIATION) & (apart <= NEAR_SHARE * spread)
    return [
        (int(min(group[a], group[b])), int(max(group[a], group[b])))
        for a, b in zip(rows[is_near], columns[is_near], strict=True)
    ]
