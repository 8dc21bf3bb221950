"""Which field of B is which of A, and which sample of B is which of A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.data.compare.side import Fields, numbers
from isograd.data.sources.base import digest
from isograd.errors import UsageError

Rows = Sequence[tuple[str, Fields]]
_CELLS = 8
#: Samples are taken for the same by content where their likeness is above this …
_LIKE = 0.9
#: Pairs in order are given up only where they are less alike than this share of others.
_CLEARLY = 0.7
#: Of samples that have nothing to do with each other, the likeliest stay below.
_CHANCE = 0.8
#: … and pairs in order are believed where so many of them are the likeliest.
_IN_ORDER = 0.8


@dataclass(frozen=True)
class Pairs:
    """Positions in A and B that are the same sample; how: "key", "content" or "order"."""

    how: str
    pairs: tuple[tuple[int, int], ...]
    only_a: tuple[int, ...] = ()
    only_b: tuple[int, ...] = ()


def pair_fields(a: Fields, b: Fields) -> list[tuple[str, str]]:
    """Fields by name where they agree, the others in their order."""
    pairs = [(name, name) for name in a if name in b]
    rest_a = [name for name in a if name not in b]
    rest_b = [name for name in b if name not in a]
    if len(rest_a) == len(rest_b) and not pairs and _kinds(a) != _kinds(b):
        return _by_kind(a, b)
    return pairs + list(zip(rest_a, rest_b, strict=False))


def _kinds(fields: Fields) -> list[str]:
    return [_kind(value) for value in fields.values()]


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    array = numbers(value)  # type: ignore[arg-type]  # a field's value
    if array is None:
        return "bytes"
    return "scalar" if array.ndim == 0 or array.size == 1 else f"array{min(array.ndim, 2)}"


def _by_kind(a: Fields, b: Fields) -> list[tuple[str, str]]:
    """Fields in their order within each kind; what remains in order."""
    left = dict(b)
    found: list[tuple[str, str]] = []
    for name, value in a.items():
        same = next((n for n, v in left.items() if _kind(v) == _kind(value)), None)
        if same is not None:
            left.pop(same)
            found.append((name, same))
    taken = {name for name, _ in found}
    rest = [name for name in a if name not in taken]
    return found + list(zip(rest, left, strict=False))


def pair_samples(a: Rows, b: Rows, key: str | None, fields: list[tuple[str, str]]) -> Pairs:
    """Pair samples by a key that is named, else in order where that is likely, else by content."""
    if key is not None:
        return _by_key(a, b, key)
    exact = _by_values(a, b, fields)
    if exact is not None:
        return exact
    likeness = _likeness(a, b, fields)
    if likeness is None:
        return _in_order(len(a), len(b))
    count = min(likeness.shape)
    diagonal = likeness[np.arange(count), np.arange(count)]
    best = likeness[:count].max(axis=1)
    if count and float((diagonal >= best - 1e-6).mean()) >= _IN_ORDER:
        return _in_order(len(a), len(b))
    found = _by_likeness(likeness)
    matched = float(np.mean([likeness[x, y] for x, y in found])) if found else 0.0
    if 2 * len(found) < count or float(diagonal.mean()) > _CLEARLY * matched:
        return _in_order(len(a), len(b))
    return _pairs("content", found, len(a), len(b))


def is_related(a: Rows, b: Rows, fields: list[tuple[str, str]]) -> bool:
    """Whether samples of A are more alike to some of B than chance makes them."""
    likeness = _likeness(a, b, fields)
    if likeness is None or min(likeness.shape) < 4:
        return True
    return float(np.median(likeness.max(axis=1))) > _CHANCE


def _pairs(how: str, found: Sequence[tuple[int, int]], count_a: int, count_b: int) -> Pairs:
    taken_a, taken_b = {x for x, _ in found}, {y for _, y in found}
    return Pairs(
        how,
        tuple(found),
        tuple(n for n in range(count_a) if n not in taken_a),
        tuple(n for n in range(count_b) if n not in taken_b),
    )


def _by_values(a: Rows, b: Rows, fields: list[tuple[str, str]]) -> Pairs | None:
    """Pair samples whose values are equal, where most have such a partner at another place."""
    keys_a = [_exact(row, [x for x, _ in fields]) for _, row in a]
    keys_b = [_exact(row, [y for _, y in fields]) for _, row in b]
    places: dict[bytes, list[int]] = {}
    for n, found in enumerate(keys_b):
        places.setdefault(found, []).append(n)
    pairs = []
    for n, found in enumerate(keys_a):
        left = places.get(found)
        if left:
            pairs.append((n, left.pop(left.index(n) if n in left else 0)))
    if 2 * len(pairs) < min(len(a), len(b)) or all(x == y for x, y in pairs):
        return None
    return _pairs("content", pairs, len(a), len(b))


def _exact(fields: Fields, names: list[str]) -> bytes:
    """What two samples of equal values share, whatever their dtypes are called."""
    values = {}
    for n, name in enumerate(names):
        value = fields.get(name, "")
        array = numbers(value)
        values[str(n)] = value if array is None else array.astype(np.float64)
    return digest(values)


def _in_order(count_a: int, count_b: int) -> Pairs:
    count = min(count_a, count_b)
    pairs = tuple((n, n) for n in range(count))
    return Pairs("order", pairs, tuple(range(count, count_a)), tuple(range(count, count_b)))


def _by_key(a: Rows, b: Rows, key: str) -> Pairs:
    keys = []
    for rows, side in ((a, "A"), (b, "B")):
        if any(key not in fields for _, fields in rows):
            known = ", ".join(rows[0][1]) if rows else "none"
            raise UsageError(f"{side} has no field {key!r}", f"Its fields are: {known}.")
        keys.append([digest({"key": fields[key]}) for _, fields in rows])
    places = {found: n for n, found in reversed(list(enumerate(keys[1])))}
    pairs = [(n, places[found]) for n, found in enumerate(keys[0]) if found in places]
    return _pairs("key", pairs, len(a), len(b))


def _by_likeness(likeness: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Pairs each of which is the other's likeliest."""
    best_b = likeness.argmax(axis=1)
    best_a = likeness.argmax(axis=0)
    return [(n, int(m)) for n, m in enumerate(best_b) if best_a[m] == n and likeness[n, m] >= _LIKE]


def _likeness(a: Rows, b: Rows, fields: list[tuple[str, str]]) -> NDArray[np.float64] | None:
    """How alike every sample of A is to every one of B, from 0 to 1; None where nothing tells."""
    total = np.zeros((len(a), len(b)))
    weight = 0.0
    for name_a, name_b in fields:
        firsts = [_sketch(fields_a.get(name_a)) for _, fields_a in a]
        seconds = [_sketch(fields_b.get(name_b)) for _, fields_b in b]
        if any(x is None for x in (*firsts, *seconds)):
            continue
        sizes = {x.size for x in (*firsts, *seconds) if x is not None}
        if len(sizes) != 1 or sizes == {1}:
            continue
        left, right = np.stack(firsts), np.stack(seconds)  # type: ignore[arg-type]
        total += np.clip(left @ right.T, 0.0, 1.0) * left.shape[1]
        weight += left.shape[1]
    return total / weight if weight else None


def _sketch(value: object) -> NDArray[np.float64] | None:
    """A unit vector that survives small changes of an array; None for what has no content."""
    array = None if value is None else numbers(value)  # type: ignore[arg-type]
    if array is None:
        return None
    if array.dtype.kind in "iu" and array.ndim == 1 and array.size >= 4:
        return _unit(_hashed(array.astype(np.int64)))
    wide = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    if wide.ndim == 3:
        wide = wide.mean(axis=0 if wide.shape[0] <= 4 else 2)
    if wide.ndim == 2 and min(wide.shape) >= _CELLS:
        rows = np.array_split(wide, _CELLS, axis=0)
        cells = [c.mean() for row in rows for c in np.array_split(row, _CELLS, axis=1)]
        return _unit(np.asarray(cells))
    flat = wide.reshape(-1)
    if flat.size < 4:
        return None
    parts = min(_CELLS * _CELLS, flat.size)
    return _unit(np.asarray([part.mean() for part in np.array_split(flat, parts)]))


def _hashed(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Counts of tokens in 64 bins, so that places do not matter."""
    mixed = (tokens.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)
    return np.bincount(mixed.astype(np.int64), minlength=64).astype(np.float64)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = values - values.mean()
    norm = float(np.linalg.norm(centred))
    found: NDArray[np.float64] = centred / norm if norm > 0 else centred
    return found
