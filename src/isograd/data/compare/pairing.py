"""Which field of B is which of A, and which sample of B is which of A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.data.compare.identity import Marks, Rows
from isograd.data.compare.side import Fields, numbers
from isograd.data.sources.base import digest
from isograd.errors import UsageError

#: Samples are taken for the same by content where their likeness is above this …
_LIKE = 0.9
#: … and above this where most others are equal to the last bit.
_ALMOST = 0.99
#: Pairs in order are given up only where they are less alike than this share of others.
_CLEARLY = 0.7
#: Of samples that have nothing to do with each other, the likeliest stay below.
_CHANCE = 0.8
#: … and pairs in order are believed where so many of them are the likeliest.
_IN_ORDER = 0.8


@dataclass(frozen=True)
class Pairs:
    """Positions in A and B that are the same sample; how: "key", "content" or "order".

    unsure: positions of which nothing shows whether they are the same; none of both is missing.
    """

    how: str
    pairs: tuple[tuple[int, int], ...]
    only_a: tuple[int, ...] = ()
    only_b: tuple[int, ...] = ()
    unsure: tuple[tuple[int, int], ...] = ()


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


def pair_samples(rows: tuple[Rows, Rows], key: str | None, marks: Marks) -> Pairs:
    """Pair samples by a key that is named, else in order where that is likely, else by content."""
    if key is not None:
        return _by_key(*rows, key)
    counts = marks.shape
    exact = _by_values(marks)
    if exact is not None:
        return exact
    likeness = marks.likeness()
    if likeness is None:
        return _in_order(*counts)
    count = min(likeness.shape)
    diagonal = likeness[np.arange(count), np.arange(count)]
    best = likeness[:count].max(axis=1)
    if count and float((diagonal >= best - 1e-6).mean()) >= _IN_ORDER:
        return _in_order(*counts)
    found = _by_likeness(likeness, _LIKE)
    matched = float(np.mean([likeness[x, y] for x, y in found])) if found else 0.0
    # of samples that are drawn, fewer are alike: half of all flips flip one side alone
    fewest = count / 2 if marks.is_sure else count / 4
    if len(found) < fewest or float(diagonal.mean()) > _CLEARLY * matched:
        return _in_order(*counts)
    if not marks.is_sure:
        return _pairs("content", found, counts, _none_of(counts))
    strange = likeness.max(axis=1) < _CHANCE, likeness.max(axis=0) < _CHANCE
    return _pairs("content", found, counts, strange)


def is_related(marks: Marks) -> bool:
    """Whether samples of A are more alike to some of B than chance makes them."""
    likeness = marks.likeness()
    if likeness is None or min(likeness.shape) < 4 or not marks.is_sure:
        return True
    return float(np.median(likeness.max(axis=1))) > _CHANCE


def others_before_draw(pairs: Pairs, marks: Marks) -> list[int]:
    """Pairs in order whose samples are others before a field is drawn: their positions.

    Said only where most are equal to the last bit, so that both sides were asked at one place.  A
    field that is not drawn is compared by its values, and needs none of this.
    """
    columns = tuple(column for column in marks.columns if column.chains is not None)
    likeness = Marks(columns).likeness() if columns and pairs.how == "order" else None
    if likeness is None or not marks.is_sure:
        return []
    equal = [all(c.a[x].digest == c.b[y].digest for c in columns) for x, y in pairs.pairs]
    if 2 * sum(equal) < len(equal):
        return []
    same = [pair for pair, is_equal in zip(pairs.pairs, equal, strict=True) if is_equal]
    likeness[[x for x, _ in same]] = 0.0
    likeness[:, [y for _, y in same]] = 0.0
    return [
        n
        for n, (x, y) in enumerate(pairs.pairs)
        if not equal[n] and max(likeness[x].max(), likeness[:, y].max()) < _ALMOST
    ]


def _pairs(
    how: str,
    found: Sequence[tuple[int, int]],
    counts: tuple[int, int],
    strange: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> Pairs:
    """What is left over is another sample where that is shown: all of it, or where strange says so.

    Of the rest as many as both sides have may be the same: these are counted, and not compared.
    """
    taken_a, taken_b = {x for x, _ in found}, {y for _, y in found}
    left_a = [n for n in range(counts[0]) if n not in taken_a]
    left_b = [n for n in range(counts[1]) if n not in taken_b]
    unsure: tuple[tuple[int, int], ...] = ()
    if strange is not None:
        maybe_a = [n for n in left_a if not strange[0][n]]
        maybe_b = [n for n in left_b if not strange[1][n]]
        unsure = tuple(zip(maybe_a, maybe_b, strict=False))
    hidden_a, hidden_b = {x for x, _ in unsure}, {y for _, y in unsure}
    return Pairs(
        how,
        tuple(found),
        tuple(n for n in left_a if n not in hidden_a),
        tuple(n for n in left_b if n not in hidden_b),
        unsure,
    )


def _none_of(counts: tuple[int, int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return np.zeros(counts[0], np.bool_), np.zeros(counts[1], np.bool_)


def _by_values(marks: Marks) -> Pairs | None:
    """Pair samples whose values are equal, where most have such a partner at another place.

    What is left over on both sides is paired where it is nearly equal, and so compared.
    """
    keys_a, keys_b = marks.keys(0), marks.keys(1)
    places: dict[bytes, list[int]] = {}
    for n, found in enumerate(keys_b):
        places.setdefault(found, []).append(n)
    pairs = []
    for n, found in enumerate(keys_a):
        left = places.get(found)
        if left:
            pairs.append((n, left.pop(left.index(n) if n in left else 0)))
    if 2 * len(pairs) < min(marks.shape) or all(x == y for x, y in pairs):
        return None
    if not marks.is_sure:
        return _pairs("content", pairs, marks.shape, _none_of(marks.shape))
    likeness = marks.likeness()
    if likeness is not None:
        likeness[[x for x, _ in pairs]] = 0.0
        likeness[:, [y for _, y in pairs]] = 0.0
        pairs = sorted(pairs + _by_likeness(likeness, _ALMOST))
    return _pairs("content", pairs, marks.shape)


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
    return _pairs("key", pairs, (len(a), len(b)))


def _by_likeness(likeness: NDArray[np.float64], least: float) -> list[tuple[int, int]]:
    """Pairs each of which is the other's likeliest, and at least so alike."""
    best_b = likeness.argmax(axis=1)
    best_a = likeness.argmax(axis=0)
    return [(n, int(m)) for n, m in enumerate(best_b) if best_a[m] == n and likeness[n, m] >= least]
