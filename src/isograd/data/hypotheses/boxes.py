"""What concerns boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isograd.data.hypotheses.base import (
    Candidate,
    Example,
    Hypothesis,
    Numbers,
    Observation,
    same_shape,
)


def _boxes(observations: Sequence[Observation]) -> bool:
    return same_shape(observations) and all(
        one.a.ndim >= 1 and one.a.shape[-1] == 4 and one.a.dtype.kind in "iuf"
        for one in observations
    )


def _corners(boxes: Numbers) -> dict[str, Numbers]:
    """The same boxes in every format, if they are corners."""
    x0, y0, x1, y1 = np.moveaxis(boxes.astype(np.float64), -1, 0)
    return {
        "x0 y0 x1 y1": np.stack((x0, y0, x1, y1), -1),
        "x y width height": np.stack((x0, y0, x1 - x0, y1 - y0), -1),
        "centre and size": np.stack(((x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0), -1),
        "y0 x0 y1 x1": np.stack((y0, x0, y1, x1), -1),
    }


def _as_corners(boxes: Numbers, name: str) -> Numbers:
    p, q, r, s = np.moveaxis(boxes.astype(np.float64), -1, 0)
    if name == "x y width height":
        return np.stack((p, q, p + r, q + s), -1)
    if name == "centre and size":
        return np.stack((p - r / 2, q - s / 2, p + r / 2, q + s / 2), -1)
    if name == "y0 x0 y1 x1":
        return np.stack((q, p, s, r), -1)
    return np.stack((p, q, r, s), -1)


_FORMATS = ("x0 y0 x1 y1", "x y width height", "centre and size", "y0 x0 y1 x1")


def _propose_boxes(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not _boxes(observations):
        return
    for old in _FORMATS:
        for new in _FORMATS:
            if old == new:
                continue
            yield Candidate(
                f"boxes are {old} in A and {new} in B",
                lambda o, old=old, new=new: _corners(_as_corners(o.a, old))[new],  # type: ignore[misc]
                old,
                new,
                "Convert to one format in both.",
            )
    if all(one.image_shape is not None for one in observations):
        for is_divided in (True, False):
            yield Candidate(
                "boxes of B are shares of the picture's size, those of A pixels"
                if is_divided
                else "boxes of A are shares of the picture's size, those of B pixels",
                lambda o, d=is_divided: _relative(o, d),  # type: ignore[misc]
                "pixels" if is_divided else "shares",
                "shares" if is_divided else "pixels",
                "Divide by width and height in both or in none.",
            )
        yield Candidate(
            "boxes of B are mirrored left and right",
            _mirrored,
            "not mirrored",
            "mirrored",
            "Mirror boxes with their picture in both.",
        )


def _relative(one: Observation, is_divided: bool) -> Numbers | None:
    if one.image_shape is None:
        return None
    height, width = one.image_shape
    size = np.asarray([width, height, width, height], np.float64)
    wide = one.a.astype(np.float64)
    return wide / size if is_divided else wide * size


def _mirrored(one: Observation) -> Numbers | None:
    if one.image_shape is None:
        return None
    found = one.a.astype(np.float64)
    width = one.image_shape[1]
    found[..., [0, 2]] = width - found[..., [2, 0]]
    return found


HYPOTHESES = (
    Hypothesis(
        "data.box_format",
        "Boxes are given in another format.",
        _propose_boxes,
        (
            Example(
                "x", "np.concatenate((x[:, :2], x[:, 2:] - x[:, :2]), 1)",
                "np.sort(rng.random((5, 4)) * 90, axis=1)", port="x y width height",
            ),
        ),
        (Example("x", "x * 3", "rng.random((5, 4))"),),
    ),
)  # fmt: skip
