"""Chance taken out, as in `isograd.frameworks.torch.neutral`, by patches that a switch turns on.

The patches are made once, before the user's code is imported, so that names which it imports from
`mindspore.ops` or `mindspore.mint` are covered too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from mindspore import Tensor, dtype, mint, nn, ops

from isograd.frameworks.base import DropoutSite
from isograd.frameworks.common import python_chance_fixed
from isograd.frameworks.draws import MaskDraws, probe_shape, shape_of_draws, site_of
from isograd.frameworks.kinds import MASKS, NOISE

_DROPOUT_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d")
#: The functions, cells and primitives that drop whole channels.
_BY_CHANNEL = frozenset(
    "dropout1d dropout2d dropout3d Dropout1d Dropout2d Dropout3d Dropout2D Dropout3D".split()
)
_DROPOUT_CELLS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d")
_DROPOUT_PRIMITIVES = ("Dropout", "Dropout2D", "Dropout3D")
_CENTRAL = ("rand", "rand_like", "randn", "randn_like", "standard_normal")
#: What masks are made of: dropout by hand, stochastic depth, DropBlock.
MASKING = frozenset("rand rand_like uniform bernoulli UniformReal".split())
#: Of these the opposite of a number is none of them.
_SHORT = (dtype.bool_, dtype.uint8)
_PRIMITIVES = ("UniformReal", "StandardNormal")


class _Switch:
    """Whether chance is taken out, and who hears of functional dropouts.

    scaled: whether dropout multiplies by 1 / (1 - p); drawn: the random functions that the last
    pass called, dropouts apart; masks: collects the numbers that are drawn.
    live: the kinds of draws that stay as they are while chance is taken out.
    """

    neutral = False
    scaled = False
    live: ClassVar[frozenset[str]] = frozenset()
    drawn: ClassVar[dict[str, None]] = {}
    note: Callable[[float], None] | None = None
    masks: MaskDraws | None = None
    #: How many random functions are running: one may call another.
    depth = 0


def dropout_cells() -> tuple[type, ...]:
    """The dropout cells of nn and mint."""
    found = [getattr(place, n, None) for place in (nn, mint.nn) for n in _DROPOUT_CELLS]
    return tuple(c for c in found if isinstance(c, type))


def install() -> None:
    """Wrap every dropout and every random draw once."""
    if getattr(ops, "_isograd_neutral", False):
        return
    ops._isograd_neutral = True
    for place in (ops, ops.function, ops.function.nn_func, mint, mint.nn.functional):
        _wrap(place, _DROPOUT_FUNCTIONS, _dropout_function, draws=False)
        _wrap(place, _CENTRAL, _central_function)
        _wrap(place, ("bernoulli",), _bernoulli_function)
        _wrap(place, ("uniform",), _uniform_function)
        _wrap(place, ("normal",), _normal_function)
        _wrap(place, ("topk",), _topk_function, draws=False)
        _wrap(place, ("random_poisson",), _poisson_function)
        _wrap(place, ("gamma", "random_gamma"), _gamma_function)
        _wrap(place, ("randint", "randint_like"), _whole_function)
        _wrap(place, ("randperm",), _permutation_function)
        _wrap(place, ("multinomial",), _multinomial_function)
        _wrap(place, ("gumbel_softmax",), _gumbel_function)
    for cell in set(dropout_cells()):
        if "construct" in cell.__dict__:
            cell.construct = _dropout_construct(cell.__name__, cell.construct)  # type: ignore[attr-defined]
    for name in _DROPOUT_PRIMITIVES:
        primitive = getattr(ops, name)
        primitive.__call__ = _dropout_primitive(name, primitive.__call__)
    for name in _PRIMITIVES:
        primitive = getattr(ops, name)
        primitive.__call__ = _marking(name, _central_function(primitive.__call__))


def _wrap(
    place: Any,
    names: tuple[str, ...],
    make: Callable[[Callable[..., Any]], Callable[..., Any]],
    draws: bool = True,
) -> None:
    for name in names:
        original = getattr(place, name, None)
        if inspect.isfunction(original) and not hasattr(original, "_isograd"):
            made = make(original)
            wrapped = functools.wraps(original)(_marking(name, made) if draws else made)
            wrapped._isograd = True  # type: ignore[attr-defined]
            setattr(place, name, wrapped)


def _marking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which notes that it was called."""

    def marked(*args: Any, **kwargs: Any) -> Any:
        if not _Switch.neutral:
            return function(*args, **kwargs)
        kind = MASKS if name in MASKING else NOISE
        if kind in _Switch.live and not _Switch.depth:
            return _as_it_is(function, *args, **kwargs)
        _Switch.drawn[name] = None
        _Switch.depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            _Switch.depth -= 1
        if _Switch.masks is not None and not _Switch.depth and isinstance(result, Tensor):
            _Switch.masks.add(name, result.shape, kind)
        return result

    return marked


def _as_it_is(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function returns where chance rules it."""
    before, _Switch.neutral = _Switch.neutral, False
    try:
        return function(*args, **kwargs)
    finally:
        _Switch.neutral = before


def _chance_drops() -> bool:
    return not _Switch.neutral or MASKS in _Switch.live


def _hear(probability: float, training: bool) -> None:
    if _Switch.note is not None:
        _Switch.note(float(probability) if training else 0.0)


def _note_mask(name: str, source: Any, probability: float, training: bool) -> None:
    if _Switch.masks is not None and training and probability:
        _Switch.masks.add(name, shape_of_draws(source.shape, name in _BY_CHANNEL))


def _kept(x: Any, probability: float, training: bool) -> Any:
    """What neutral dropout makes of its input: everything kept."""
    if not training or probability == 0.0:
        return x
    if probability == 1.0:
        return ops.zeros_like(x)
    return x * (1.0 / (1.0 - probability)) if _Switch.scaled else x


def rate_of(cell: Any) -> float:
    """The rate of a dropout cell, whichever way it was given."""
    for name in ("p", "prob"):
        rate = getattr(cell, name, None)
        if rate is not None:
            return float(rate)
    return 1.0 - float(cell.keep_prob)


def _dropout_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def dropout(*args: Any, **kwargs: Any) -> Any:
        if _chance_drops():
            return _as_it_is(original, *args, **kwargs)
        probability = float(args[1] if len(args) > 1 else kwargs.get("p", 0.5))
        training = args[2] if len(args) > 2 else kwargs.get("training", True)
        _hear(probability, training)
        source = args[0] if args else kwargs.get("input", kwargs.get("x"))
        _note_mask(original.__name__, source, probability, training)
        return _kept(source, probability, training)

    return dropout


def _dropout_construct(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def construct(self: Any, x: Any, *args: Any) -> Any:
        if _chance_drops():
            return _as_it_is(original, self, x, *args)
        _hear(0.0, False)  # its rate is measured by running the cell
        _note_mask(kind, x, rate_of(self), self.training)
        return _kept(x, rate_of(self), self.training)

    return construct


def _dropout_primitive(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, x: Any, *args: Any) -> Any:
        if _chance_drops():
            return _as_it_is(original, self, x, *args)
        probability = 1.0 - float(getattr(self, "keep_prob", 1.0))
        _hear(probability, True)
        _note_mask(name, x, probability, True)
        return _kept(x, probability, True), ops.ones_like(x)

    return call


def _central_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return ops.full_like(result, 0.5) if _Switch.neutral else result

    return draw


def _uniform_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(shape: Any, minval: Any, maxval: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(shape, minval, maxval, *args, **kwargs)
        return ops.zeros_like(result) + (minval + maxval) * 0.5 if _Switch.neutral else result

    return draw


def _normal_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """`ops.normal(shape, mean, stddev)` and `mint.normal(mean, std, size)`."""
    parameters = inspect.signature(original).parameters
    place = list(parameters).index("mean")
    named = "stddev" if "stddev" in parameters else "std"

    def draw(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not _Switch.neutral or not isinstance(result, Tensor):
            return result
        mean = kwargs.get("mean", args[place] if len(args) > place else 0.0)
        deviation = kwargs.get(named, args[place + 1] if len(args) > place + 1 else 1.0)
        return ops.zeros_like(result) + mean + deviation * 0.5

    return draw


def _poisson_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """`ops.random_poisson(shape, rate)`: the mean."""

    def draw(shape: Any, rate: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(shape, rate, *args, **kwargs)
        return ops.zeros_like(result) + rate if _Switch.neutral else result

    return draw


def _gamma_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """`ops.random_gamma(shape, alpha)` and `ops.gamma(shape, alpha, beta)`: the mean."""
    has_rate = "beta" in inspect.signature(original).parameters

    def draw(shape: Any, alpha: Any, *args: Any, **kwargs: Any) -> Any:
        if not _Switch.neutral:
            return original(shape, alpha, *args, **kwargs)
        rate = kwargs.get("beta", args[0] if args else 1.0) if has_rate else 1.0
        mean = alpha / rate
        sizes = shape.asnumpy().tolist() if isinstance(shape, Tensor) else list(shape)
        return ops.broadcast_to(mean, (*sizes, *mean.shape))

    return draw


def _whole_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not _Switch.neutral:
            return result
        numbers = [part for part in args if isinstance(part, Integral)]
        low = kwargs.get("low", numbers[0] if len(numbers) > 1 else 0)
        high = kwargs.get("high", numbers[min(1, len(numbers) - 1)] if numbers else None)
        return ops.full_like(result, int(low + (high - low) // 2))

    return draw


def _permutation_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(n: int, *args: Any, **kwargs: Any) -> Any:
        if not _Switch.neutral:
            return original(n, *args, **kwargs)
        return Tensor(np.arange(n)[::-1].copy(), kwargs.get("dtype", dtype.int64))

    return draw


def _multinomial_function(original: Callable[..., Any]) -> Callable[..., Any]:
    default = inspect.signature(original).parameters["replacement"].default

    def multinomial(
        input: Any, num_samples: int, replacement: bool = default, *args: Any, **kwargs: Any
    ) -> Any:
        if not _Switch.neutral:
            return original(input, num_samples, replacement, *args, **kwargs)
        order = ops.sort(-input, -1)[1].astype(dtype.int64)
        if replacement:
            return ops.broadcast_to(order[..., :1], (*order.shape[:-1], num_samples))
        return order[..., :num_samples]

    return multinomial


def _gumbel_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Any:
        if not _Switch.neutral:
            return original(logits, tau, hard, dim)
        soft = ops.softmax(logits / tau, dim)
        if not hard:
            return soft
        chosen = ops.argmax(soft, dim, True)
        places = ops.arange(soft.shape[dim]).reshape(-1, *[1] * (soft.ndim - 1 - dim % soft.ndim))
        return (places == chosen).astype(soft.dtype) - ops.stop_gradient(soft) + soft

    return gumbel_softmax


def _topk_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def topk(
        input: Any, k: int, dim: int | None = -1, largest: bool = True, sorted: bool = True
    ) -> Any:
        if not _Switch.neutral:
            return original(input, k, dim, largest, sorted)
        axis = -1 if dim is None else dim
        ranked = input.astype(dtype.int32) if input.dtype in _SHORT else input
        order = ops.sort(-ranked if largest else ranked, axis)[1]
        positions = ops.narrow(order, axis % input.ndim, 0, k)
        return ops.gather_elements(input, axis, positions), positions

    return topk


def _bernoulli_function(original: Callable[..., Any]) -> Callable[..., Any]:
    has_rate = "p" in inspect.signature(original).parameters

    def draw(source: Any, *args: Any, **kwargs: Any) -> Any:
        if not _Switch.neutral:
            return original(source, *args, **kwargs)
        p = source  # mint's takes the probabilities as its tensor
        if has_rate:
            p = args[0] if args else kwargs.get("p", 0.5)
        if isinstance(p, Tensor):
            return (p >= 0.5).astype(dtype.float32) + ops.zeros_like(source)
        return ops.full_like(source, float(p >= 0.5))

    return draw


@contextlib.contextmanager
def neutral_chance(
    note: Callable[[float], None] | None = None,
    masks: MaskDraws | None = None,
    live: frozenset[str] = frozenset(),
) -> Iterator[None]:
    """No chance anywhere inside; live: the kinds of draws that stay as they are."""
    before = _Switch.neutral, _Switch.note, _Switch.masks, _Switch.live
    _Switch.neutral, _Switch.note, _Switch.masks, _Switch.drawn = True, note, masks, {}
    _Switch.live = live
    try:
        with python_chance_fixed():
            yield
    finally:
        _Switch.neutral, _Switch.note, _Switch.masks, _Switch.live = before


def drawn() -> tuple[str, ...]:
    """The random functions that the last neutral pass called, dropouts apart."""
    return tuple(_Switch.drawn)


def keep_scale(keeps: bool) -> None:
    """Whether neutral dropout multiplies by 1 / (1 - p) from now on."""
    _Switch.scaled = keeps


def measure_dropout(name: str, cell: nn.Cell, occurrence: int) -> DropoutSite:
    """Run a dropout cell on ones: which share becomes zero, and what is the rest scaled by."""
    spatial = 1 if isinstance(cell, nn.Dropout1d) else 3 if isinstance(cell, nn.Dropout3d) else 2
    out = cell(ops.ones(probe_shape(spatial), dtype.float32)).asnumpy()
    kept = out[out != 0]
    return site_of(name, occurrence, out == 0, float(kept.mean()) if kept.size else 0.0)
