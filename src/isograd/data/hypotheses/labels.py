"""What concerns labels and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from isograd.data.hypotheses.base import (
    Candidate,
    Example,
    Hypothesis,
    Numbers,
    Observation,
    are_integers,
    same_shape,
)

_LABEL = "np.asarray(rng.integers(0, 50))"


def _propose_offset(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not are_integers(observations) or not same_shape(observations):
        return
    if observations[0].a.ndim > 1 or observations[0].a.dtype == np.bool_:
        return
    steps = {int(s) for o in observations for s in np.unique(_wide(o.b) - _wide(o.a))}
    if len(steps) != 1 or 0 in steps:
        return
    (step,) = steps
    what = "integers" if any(o.a.size > 1 for o in observations) else "labels"
    yield Candidate(
        f"{what} of B are {abs(step)} {'greater' if step > 0 else 'smaller'}",
        lambda one: _wide(one.a) + step,
        "0",
        f"{step:+d}",
        "Count classes, or ids of tokens, from the same number in both.",
    )


def _wide(values: Numbers) -> Numbers:
    return values.astype(np.int64)


def _propose_map(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not are_integers(observations) or not same_shape(observations):
        return
    found: dict[int, int] = {}
    for one in observations:
        pairs = np.unique(np.stack((_wide(one.a).reshape(-1), _wide(one.b).reshape(-1))), axis=1)
        if pairs.shape[1] > 4096:
            return
        for old, new in pairs.T.tolist():
            if found.setdefault(old, new) != new:
                return
    changed = {old: new for old, new in found.items() if old != new}
    is_image = observations[0].a.ndim >= 2
    if not changed or len(found) < 2:
        return
    if len(set(found.values())) < len(found) and not is_image:
        return
    shown = ", ".join(f"{old} → {new}" for old, new in list(changed.items())[:6])
    yield Candidate(
        f"labels are named otherwise: {shown}",
        lambda one: _mapped(one.a, found),
        "0, 1, …",
        shown,
        "Sort the classes in the same way in both, and map ignored ones alike.",
        complexity=3,
    )


def _mapped(values: Numbers, found: dict[int, int]) -> Numbers:
    """Labels by a map; NaN for one that the map does not know."""
    flat = [found.get(int(v), np.nan) for v in values.reshape(-1)]
    return np.asarray(flat, np.float64).reshape(values.shape)


def _propose_one_hot(observations: Sequence[Observation]) -> Iterator[Candidate]:
    one = observations[0]
    if one.b.ndim == one.a.ndim + 1:
        yield Candidate(
            "labels of B are vectors of zeros and a one, those of A numbers",
            lambda o: np.eye(o.b.shape[-1])[_wide(o.a)] if _fits(o.a, o.b) else None,
            "numbers",
            "one-hot",
            "Give the loss what it takes: class numbers, or take out OneHot.",
        )
    if one.a.ndim == one.b.ndim + 1:
        yield Candidate(
            "labels of A are vectors of zeros and a one, those of B numbers",
            lambda o: o.a.argmax(axis=-1),
            "one-hot",
            "numbers",
            "Give the loss what it takes: add or take out OneHot.",
        )


def _fits(labels: Numbers, vectors: Numbers) -> bool:
    whole = labels.dtype.kind in "iu" and labels.size > 0
    return bool(whole and labels.min() >= 0 and labels.max() < vectors.shape[-1])


def _propose_mask(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations) or not all(
        set(np.unique(v).tolist()) <= {0, 1} for one in observations for v in (one.a, one.b)
    ):
        return
    if all(one.a.ndim == 0 for one in observations):
        return
    rules: tuple[tuple[str, Callable[[Numbers], Any]], ...] = (
        ("B marks with 0 what A marks with 1", lambda a: 1 - _wide(a)),
        ("B's mask is 1 everywhere", lambda a: np.ones_like(_wide(a))),
        ("B's mask is 0 everywhere", lambda a: np.zeros_like(_wide(a))),
    )
    for text, rule in rules:
        yield Candidate(
            text,
            lambda one, rule=rule: rule(one.a),  # type: ignore[misc]
            "1 is content",
            text,
            "Make the mask from the padding in both, with the same meaning of 1.",
        )


HYPOTHESES = (
    Hypothesis(
        "data.label_offset",
        "Classes are counted from another number.",
        _propose_offset,
        (Example("x", "x + 1", _LABEL, port="+1"), Example("x", "x - 1", _LABEL)),
        (Example("x", "x * 2", "np.asarray(rng.integers(3, 50))"),),
    ),
    Hypothesis(
        "data.label_map",
        "Classes have other numbers.",
        _propose_map,
        (
            Example("x", "np.asarray([3, 0, 1, 2])[x]", "rng.integers(0, 4, (9, 9))"),
            Example("x", "np.where(x == 3, 255, x)", "rng.integers(0, 4, (9, 9))", port="3 → 255"),
        ),
        (Example("x", "x[::-1]", "rng.integers(0, 4, (9, 9))"),),
    ),
    Hypothesis(
        "data.one_hot",
        "Labels are numbers on one side and vectors on the other.",
        _propose_one_hot,
        (Example("x", "np.eye(50, dtype=np.float32)[x]", _LABEL, port="one-hot"),),
        (Example("x", "x + 1", _LABEL),),
    ),
    Hypothesis(
        "data.mask",
        "A mask marks the opposite, or all.",
        _propose_mask,
        (
            Example("x", "1 - x", "rng.integers(0, 2, 30)"),
            Example("x", "np.ones_like(x)", "rng.integers(0, 2, 30)"),
        ),
        (Example("x", "np.roll(x, 3)", "rng.integers(0, 2, 30)"),),
    ),
)
