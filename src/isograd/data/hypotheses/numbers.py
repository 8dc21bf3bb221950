"""What concerns any numbers: range, mean and deviation, functions, dtype, rounding, columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from isograd.data.hypotheses.base import (
    Candidate,
    Example,
    Hypothesis,
    Numbers,
    Observation,
    channel_axis,
    listed,
    number,
    same_shape,
)
from isograd.data.hypotheses.logarithms import propose_scale_of_logarithms

_SMOOTH = "rng.random((3, 9, 8)).astype(np.float32)"
_STATISTICS = "m=np.array([.485,.456,.406],np.float32)[:,None,None];"
#: Factors that pipelines apply, with what they mean.
SCALES = (
    (255.0, "A has values of 0 to 1 where B has 0 to 255"),
    (1 / 255, "A has values of 0 to 255 where B has 0 to 1"),
    (1 / 256, "B divides by 256"),
    (256.0, "A divides by 256"),
    (255 / 256, "B divides by 256 and A by 255"),
    (256 / 255, "A divides by 256 and B by 255"),
    (1 / 127.5, "B divides by 127.5"),
    (127.5, "A divides by 127.5"),
)


def _floats(observations: Sequence[Observation]) -> bool:
    return same_shape(observations) and all(
        one.b.dtype.kind == "f" and one.a.dtype.kind in "biuf" for one in observations
    )


def _scaled(factor: float) -> Callable[[Observation], Numbers]:
    return lambda one: one.a.astype(np.float64) * factor


def _propose_scale(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations):
        return
    for factor, said in SCALES:
        yield Candidate(
            f"{said} (× {number(factor)})",
            _scaled(factor),
            "× 1",
            f"× {number(factor)}",
            "Divide by 255 in both pipelines, once: torchvision's ToTensor does, MindSpore's "
            "HWC2CHW does not (vision.Rescale(1 / 255, 0) or vision.ToTensor does).",
        )
    yield Candidate(
        "B has values of -1 to 1 where A has 0 to 1",
        lambda one: one.a.astype(np.float64) * 2 - 1,
        "0 to 1",
        "-1 to 1",
        "Use the same mean and deviation in both.",
    )
    yield Candidate(
        "A has values of -1 to 1 where B has 0 to 1",
        lambda one: (one.a.astype(np.float64) + 1) / 2,
        "-1 to 1",
        "0 to 1",
        "Use the same mean and deviation in both.",
    )


def _propose_factor(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """One factor for all numbers, whichever it is."""
    if not _floats(observations) or all(one.a.size < 2 for one in observations):
        return
    a = np.concatenate([one.a.reshape(-1) for one in observations]).astype(np.float64)
    b = np.concatenate([one.b.reshape(-1) for one in observations]).astype(np.float64)
    square = float((a * a).sum())
    if square > 0 and np.isfinite(square):
        factor = float((a * b).sum()) / square
        yield Candidate(
            f"B is A × {number(factor)}",
            _scaled(factor),
            "× 1",
            f"× {number(factor)}",
            "Scale by the same factor in both.",
            complexity=2,
        )


def _propose_range(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """The same factor of 255 in every channel, and shifts: statistics of the other range."""
    if not _floats(observations) or any(one.a.ndim == 0 for one in observations):
        return
    found = affine_of(observations)
    if found is None:
        return
    slope, shift = found
    for factor, said in ((255.0, "0 to 1 on values of 0 to 255"), (1 / 255, "0 to 255 on 0 to 1")):
        if np.allclose(slope, factor, rtol=1e-4):
            yield Candidate(
                f"B applies mean and deviation of {said}",
                _affine(slope, shift),
                "one range",
                f"× {number(factor)} and a shift",
                "Give MindSpore's Normalize mean and deviation × 255 where it comes before "
                "ToTensor, or rescale first.",
                complexity=2,
            )


def _channels(values: Numbers) -> NDArray[np.float64]:
    """(C, N): the elements of each channel of a picture, or of each column."""
    axis = channel_axis(values)
    if axis is None:
        axis = -1 if values.ndim else 0
    wide = values.astype(np.float64)
    return np.moveaxis(wide, axis, 0).reshape(wide.shape[axis] if wide.ndim else 1, -1)


def affine_of(observations: Sequence[Observation]) -> tuple[Numbers, Numbers] | None:
    """Slope and shift of each channel of B over A by least squares; None where none is fixed.

    Returns two arrays of shape (channels,), float64.
    """
    firsts = [_channels(one.a) for one in observations]
    seconds = [_channels(one.b) for one in observations]
    if len({len(x) for x in (*firsts, *seconds)}) != 1:
        return None
    a, b = np.concatenate(firsts, axis=1), np.concatenate(seconds, axis=1)
    if a.shape != b.shape or a.shape[1] < 3 or not np.isfinite(a).all() or not np.isfinite(b).all():
        return None
    mean_a, mean_b = a.mean(axis=1, keepdims=True), b.mean(axis=1, keepdims=True)
    spread = ((a - mean_a) ** 2).sum(axis=1)
    if (spread <= 1e-12 * np.maximum(1.0, (a**2).sum(axis=1))).any():
        return None
    slope = ((a - mean_a) * (b - mean_b)).sum(axis=1) / spread
    return slope, mean_b[:, 0] - slope * mean_a[:, 0]


def _affine(slope: Numbers, shift: Numbers) -> Callable[[Observation], Numbers | None]:
    def apply(one: Observation) -> Numbers | None:
        axis = channel_axis(one.a)
        if axis is None:
            axis = -1
        if not one.a.ndim or one.a.shape[axis] != len(slope):
            return None
        shape = [1] * one.a.ndim
        shape[axis] = len(slope)
        return one.a.astype(np.float64) * slope.reshape(shape) + shift.reshape(shape)

    return apply


def _propose_normalize(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not _floats(observations) or any(one.a.ndim == 0 for one in observations):
        return
    found = affine_of(observations)
    if found is None:
        return
    slope, shift = found
    if (np.abs(slope) < 1e-9).any():
        return
    mean = -shift / slope
    yield Candidate(
        f"another mean or deviation: per channel B = A × {listed(slope)} + {listed(shift)}, "
        f"that is A less {listed(mean)} over {listed(1 / slope)}",
        _affine(slope, shift),
        "",
        f"slope {listed(slope)}, shift {listed(shift)}",
        "Give both the same mean and deviation, in the same order of channels and in the same "
        "range (0 to 1 after ToTensor, 0 to 255 before it).",
        complexity=2,
    )


_FUNCTIONS: tuple[tuple[str, Callable[[Numbers], Numbers]], ...] = (
    ("the square root", np.sqrt),
    ("the square", np.square),
    ("the natural logarithm", np.log),
    ("log(1 + ·)", np.log1p),
    ("the decimal logarithm", np.log10),
    ("10 · log10", lambda a: 10 * np.log10(a)),
    ("20 · log10", lambda a: 20 * np.log10(a)),
    ("the exponential", np.exp),
    ("exp(·) - 1", np.expm1),
    ("the magnitude", np.abs),
    ("the opposite", np.negative),
    ("the complement to 1", lambda a: 1 - a),
    ("the complement to 255", lambda a: 255 - a),
    ("the power 10^·", lambda a: np.power(10.0, a)),
    ("the power 10^(· / 10)", lambda a: np.power(10.0, a / 10)),
    ("the power 10^(· / 20)", lambda a: np.power(10.0, a / 20)),
    ("ln(10) / 10 times", lambda a: a * np.log(10) / 10),
    ("10 / ln(10) times", lambda a: a * 10 / np.log(10)),
    ("log(2) · log2 for log10", lambda a: a / np.log(10)),
    ("ln(10) times", lambda a: a * np.log(10)),
    ("twice", lambda a: 2 * a),
    ("half", lambda a: a / 2),
)


def _function(function: Callable[[Numbers], Numbers]) -> Callable[[Observation], Numbers]:
    def apply(one: Observation) -> Numbers:
        with np.errstate(all="ignore"):
            return function(one.a.astype(np.float64))

    return apply


def _propose_function(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations) or all(one.a.size < 2 for one in observations):
        return
    if all(
        set(np.unique(one.a[:1])) <= {0, 1} and one.a.dtype.kind in "biu" for one in observations
    ):
        return  # a mask, of which another hypothesis says more
    yield from _shifted_functions(observations)
    for name, function in _FUNCTIONS:
        yield Candidate(
            f"B is {name} of A",
            _function(function),
            "A",
            name,
            "Apply the function in both pipelines or in none.",
        )


def _shifted_functions(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """A function with a factor and a shift, as a logarithm has with a small number added."""
    if not _floats(observations):
        return
    a = np.concatenate([one.a.reshape(-1) for one in observations]).astype(np.float64)
    b = np.concatenate([one.b.reshape(-1) for one in observations]).astype(np.float64)
    for name, function in (
        ("the exponential", np.exp),
        ("the natural logarithm", np.log),
        ("the square root", np.sqrt),
        ("the square", np.square),
    ):
        with np.errstate(all="ignore"):
            x = function(a)
        if not np.isfinite(x).all() or not np.ptp(x) or not np.isfinite(b).all():
            continue
        slope, shift = np.polyfit(x, b, 1)
        yield Candidate(
            f"B is {number(slope)} × {name} of A, and {number(shift)}",
            lambda one, f=function, s=slope, t=shift: (  # type: ignore[misc]
                s * f(one.a.astype(np.float64)) + t
            ),
            "A",
            name,
            "Apply the function in both pipelines or in none.",
            complexity=3,
        )


def _propose_dtype(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations):
        return
    kinds = {(str(one.a.dtype), str(one.b.dtype)) for one in observations}
    if len(kinds) != 1:
        return
    ((first, second),) = kinds
    if first == second:
        return
    yield Candidate(
        f"equal values as {first} in A and as {second} in B",
        lambda one: one.a.astype(one.b.dtype),
        first,
        second,
        f"Cast B to {first} (mindspore.dataset.transforms.TypeCast).",
    )


def _propose_rounding(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations):
        return
    for name, function in (
        ("rounds down", np.floor),
        ("rounds half to even", np.rint),
        ("rounds half up", lambda a: np.floor(a + 0.5)),
        ("rounds up", np.ceil),
    ):
        yield Candidate(
            f"B {name} where A keeps fractions",
            _function(function),
            "fractions",
            name,
            "Cast to float before the arithmetic, or round in the same way in both.",
        )
    if all(one.x is not None and one.x.dtype.kind == "f" for one in observations):
        for name, function in (("rounds down", np.floor), ("rounds half to even", np.rint)):
            yield Candidate(
                f"B {name} to integers and A does otherwise",
                lambda one, f=function: f(one.x.astype(np.float64)),  # type: ignore[misc]
                "other rounding",
                name,
                "Round in the same way in both.",
            )


def _propose_clip(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not same_shape(observations) or not observations:
        return
    low = min(float(one.b.min()) for one in observations if one.b.size)
    high = max(float(one.b.max()) for one in observations if one.b.size)
    yield Candidate(
        f"B is clipped to {number(low)} to {number(high)}",
        lambda one: np.clip(one.a.astype(np.float64), low, high),
        "not clipped",
        f"{number(low)} to {number(high)}",
        "Clip in both or in none.",
        complexity=2,
    )


def _propose_columns(observations: Sequence[Observation]) -> Iterator[Candidate]:
    one = observations[0]
    if not same_shape(observations) or not one.a.ndim or channel_axis(one.a) is not None:
        return
    count = one.a.shape[-1]
    if one.a.dtype.kind in "iu" and one.a.ndim == 1 and count > 32:
        return
    if not 2 <= count <= 256 or any(o.a.shape[-1:] != (count,) for o in observations):
        return
    a = np.concatenate([o.a.reshape(-1, count) for o in observations]).astype(np.float64)
    b = np.concatenate([o.b.reshape(-1, count) for o in observations]).astype(np.float64)
    order = []
    for n in range(count):
        scale = max(1.0, float(np.nanmax(np.abs(b[:, n]), initial=0.0)))
        same = np.isclose(a, b[:, n : n + 1], rtol=1e-6, atol=1e-6 * scale, equal_nan=True)
        places = np.flatnonzero(same.all(axis=0))
        if not places.size:
            return
        order.append(int(places[0]) if n not in places else n)
    if sorted(order) != list(range(count)) or order == list(range(count)):
        return
    yield Candidate(
        f"columns stand in another order: B's are A's {', '.join(map(str, order[:12]))}",
        lambda one: one.a[..., order],
        "0, 1, …",
        ", ".join(map(str, order[:12])),
        "Name the columns in one order in both.",
    )


HYPOTHESES = (
    Hypothesis(
        "data.dtype",
        "Equal values are of different dtypes.",
        _propose_dtype,
        (
            Example("x.astype(np.float32)", "x.astype(np.float64)"),
            Example("x.astype(np.int64)", "x.astype(np.int32)", port="int32"),
            Example("x.astype(np.float32)", "x"),
        ),
        (Example("x", "x"),),
    ),
    Hypothesis(
        "data.scale",
        "Values are of 0 to 255 on one side and of 0 to 1 on the other, or the like.",
        lambda observations: itertools.chain(
            _propose_scale(observations),
            _propose_factor(observations),
            _propose_range(observations),
            propose_scale_of_logarithms(observations),
        ),
        (
            Example("x", "x*np.float32(255)", _SMOOTH),
            Example("x/np.float32(255)", "x.astype(np.float32)", port="× 255"),
            Example("x/np.float32(255)", "x/np.float32(256)"),
            Example("x", "x*2-1", _SMOOTH, port="-1 to 1"),
            Example("(x-.5)/np.float32(.2)", "(255*x-.5)/np.float32(.2)", _SMOOTH),
            Example(
                "np.log(x+np.float32(1e-3))",
                "np.log(x*np.float32(2**30)+np.float32(1e-3))",
                _SMOOTH,
                port="× 1.07374e+09",
            ),
            Example(
                "10*np.log10(x*np.float32(2**30)+np.float32(1e-3))",
                "10*np.log10(x+np.float32(1e-3))",
                _SMOOTH,
            ),
        ),
        (
            Example("x", "x*x", _SMOOTH),
            Example("np.log(x+np.float32(1e-3))", "np.log(x+np.float32(1e-2))", _SMOOTH),
        ),
    ),
    Hypothesis(
        "data.normalize",
        "Means or deviations differ, or their order does.",
        _propose_normalize,
        (
            Example("(x-.5)/np.float32(.25)", "(x-.4)/np.float32(.25)", _SMOOTH),
            Example(
                "(x-np.array([.485,.456,.406],np.float32)[:,None,None])/np.float32(.2)",
                "(x-np.array([.406,.456,.485],np.float32)[:,None,None])/np.float32(.2)",
                _SMOOTH,
            ),
        ),
        (Example("x", "np.sqrt(x)", _SMOOTH),),
    ),
    Hypothesis(
        "data.function",
        "One side applies a function to every number that the other does not.",
        _propose_function,
        (
            Example("x", "np.log(x)", "rng.random((4, 40)).astype(np.float32) + np.float32(.1)"),
            Example("x**2", "x", "rng.random((4, 40)).astype(np.float32)"),
        ),
        (Example("x", "x*3", _SMOOTH),),
    ),
    Hypothesis(
        "data.rounding",
        "One side rounds where the other does not, or otherwise.",
        _propose_rounding,
        (Example("x", "np.floor(x)", "rng.random((4, 40)) * 255"),),
        (Example("x", "x", _SMOOTH),),
    ),
    Hypothesis(
        "data.clip",
        "One side limits values to a range.",
        _propose_clip,
        (Example("x", "np.clip(x, -1, 1)", "rng.standard_normal((20, 30))"),),
        (Example("x", "x[::-1]", "rng.standard_normal((20, 30))"),),
    ),
    Hypothesis(
        "data.column_order",
        "The columns of a table or of a feature stand in another order.",
        _propose_columns,
        (Example("x", "x[[2, 0, 1, 3]]", "rng.random(4)", port="2, 0, 1, 3"),),
        (Example("x", "x + 1", "rng.random(4)"),),
    ),
)
