"""What a hypothesis about a data pipeline is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Observation:
    """One sample at the place where A and B part.

    x: what entered both, where that is known; a, b: what came out of each; image_shape: height and
    width of the sample's picture, for boxes; encoded: the bytes of the picture before decoding.
    """

    a: Numbers
    b: Numbers
    x: Numbers | None = None
    image_shape: tuple[int, int] | None = None
    encoded: bytes | None = None


#: What B would have, made of what A has; NaN where the candidate cannot say.
Apply = Callable[[Observation], "Numbers | None"]


@dataclass(frozen=True)
class Candidate:
    """One hypothesis with its values.

    reference, port: what A and B have; levels: by how many units of the last place of integers
    the prediction may be off (a resize rounds differently in every library), 0 for none.
    complexity: of two that explain all, the simpler is named.
    """

    text: str
    apply: Apply
    reference: str = ""
    port: str = ""
    fix: str = ""
    levels: float = 0.0
    complexity: int = 1


Propose = Callable[[Sequence[Observation]], Iterator[Candidate]]


@dataclass(frozen=True)
class Example:
    """A pair of numpy expressions of `x` in which this cause is present.

    a, b: expressions; `np` is numpy and `f` the functions of `neutral.py`.
    x: an expression of `rng`, a seeded generator.  sees_input: whether x is known.
    port: what the cause must say of B.
    """

    a: str
    b: str
    x: str = "rng.integers(0, 256, (12, 10, 3)).astype(np.uint8)"
    sees_input: bool = False
    port: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """One way in which pipelines differ."""

    id: str
    summary: str
    propose: Propose
    examples: tuple[Example, ...]
    counterexamples: tuple[Example, ...] = field(default=())


def channels_last(values: Numbers) -> bool | None:
    """Whether an array's channels come last; None where it is no picture.

    values: any shape and dtype.
    """
    if values.ndim < 3:
        return None
    if values.shape[-1] in (1, 3, 4):
        return True
    return False if values.shape[-3] in (1, 3, 4) else None


def channel_axis(values: Numbers) -> int | None:
    """The axis of channels, counted from the end; None where it is no picture.

    values: any shape and dtype.
    """
    last = channels_last(values)
    return None if last is None else (-1 if last else -3)


def as_hwc(values: Numbers) -> Numbers | None:
    """A picture with channels last, (H, W, C); None where it is no picture.

    values: any shape and dtype.
    returns: a view (H, W, C) of the same dtype.
    """
    if values.ndim == 2:
        return values[..., None]
    if values.ndim != 3:
        return None
    last = channels_last(values)
    if last is None:
        return None
    return values if last else values.transpose(1, 2, 0)


def like(values: Numbers, example: Numbers) -> Numbers:
    """A picture (H, W, C) in the layout of an example.

    values: (H, W, C), any dtype.
    example: (H, W), (H, W, C) or (C, H, W), any dtype.
    returns: a view with the axes of the example's shape, the dtype of values.
    """
    if example.ndim == 2:
        return values[..., 0]
    return values if channels_last(example) else values.transpose(2, 0, 1)


def number(value: float) -> str:
    """A number in a message."""
    return f"{value:.6g}"


def listed(values: Sequence[float] | Numbers) -> str:
    """Numbers in a message.

    values: any shape and real dtype; the first eight are written.
    """
    flat = np.asarray(values).reshape(-1)
    return "(" + ", ".join(number(float(v)) for v in flat[:8]) + (", …)" if flat.size > 8 else ")")


def are_integers(observations: Sequence[Observation]) -> bool:
    """Whether all arrays of both sides hold integers or truth values."""
    return all(one.a.dtype.kind in "biu" and one.b.dtype.kind in "biu" for one in observations)


def same_shape(observations: Sequence[Observation]) -> bool:
    """Whether both sides of every observation have one shape."""
    return all(one.a.shape == one.b.shape for one in observations)
