"""Chance taken out: dropout keeps everything, and random draws are constants.

The two frameworks' generators cannot be made to agree, so while networks are compared every draw
is the same on both sides, whatever its order: a uniform number is 0.5, a normal one half a
deviation above the mean, an exponential one the median, a Poisson or gamma one the mean, a whole
one in the middle of its range, a permutation the reverse, a Bernoulli or multinomial one the
likeliest outcome.  Dropout passes its input, alpha dropout its affine map of what is kept, RReLU
takes the mean slope.  Dropout's own
rates are noted and compared apart.  Draws that are sorted (`argsort(rand(n))` chooses patches) are
all equal then: sorting keeps the order of equal elements, and of those `topk` takes the first.

A mask drawn by hand, `(rand_like(x) < keep) / keep`, multiplies what it keeps by 1 / keep.  Where
either network draws so, dropout does too (`scaled`), because one may replace the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from isograd.frameworks.base import DropoutSite
from isograd.frameworks.common import python_chance_fixed
from isograd.frameworks.draws import MaskDraws, probe_shape, shape_of_draws, site_of
from isograd.frameworks.kinds import MASKS, NOISE
from isograd.frameworks.torch.constant_draws import DRAWING, MASKING, constant_draw

_ALPHA = frozenset(
    "alpha_dropout alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_".split()
)
_DROPOUTS = _ALPHA | frozenset(
    "dropout dropout_ feature_dropout feature_dropout_ dropout1d dropout2d dropout3d".split()
)
_BY_CHANNEL = frozenset(
    "feature_dropout feature_dropout_ feature_alpha_dropout feature_alpha_dropout_ "
    "dropout1d dropout2d dropout3d".split()
)
_RRELUS = frozenset("rrelu rrelu_".split())
_STACKED = frozenset("lstm gru rnn_tanh rnn_relu".split())
_SORTS = frozenset("sort argsort".split())
_MASKS = _DROPOUTS | MASKING | _STACKED | frozenset(("scaled_dot_product_attention",))
_NOISE = (DRAWING - MASKING) | _RRELUS | frozenset(("_standard_gamma", "gumbel_softmax"))
#: What SELU tends to from above, which alpha dropout gives to what it drops (Klambauer et al.
#: 2017, arXiv 1706.02515).
_LOWEST = -1.0507009873554805 * 1.6732632423543772


class NeutralChance(TorchFunctionMode):
    """Replaces dropout and random draws; `note` hears of each functional dropout.

    scaled: whether dropout multiplies by 1 / (1 - p); drawn: the random functions that
    were called, dropouts apart; masks: collects the numbers that are drawn.
    live: the kinds of draws that stay as they are.
    """

    def __init__(
        self,
        note: Callable[[float], None] | None = None,
        scaled: bool = False,
        masks: MaskDraws | None = None,
        live: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self._note, self._scaled, self._masks, self._live = note, scaled, masks, live
        self.drawn: dict[str, None] = {}

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if self._live and _kind(name) in self._live:
            return func(*args, **kwargs)
        replaced = self._replaced(name, func, args, kwargs)
        if replaced is not NotImplemented:
            return replaced
        result = func(*args, **kwargs)
        drawn = constant_draw(name, args, kwargs, result)
        if drawn is None:
            return result
        self.drawn[name] = None
        if self._masks is not None:
            self._masks.add(name, result.shape, MASKS if name in MASKING else NOISE)
        with torch.no_grad():
            return result.copy_(drawn) if isinstance(drawn, torch.Tensor) else result.fill_(drawn)

    def _replaced(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What replaces a call of this function; NotImplemented where it runs as it is."""
        if name in _DROPOUTS:
            return self._dropout(name, args, kwargs)
        if name in _RRELUS:
            if args[3] if len(args) > 3 else kwargs.get("training", False):
                self.drawn[name] = None
            return _with_mean_slope(func, args, kwargs)
        if name == "scaled_dot_product_attention":
            return self._attention(func, args, kwargs)
        if self._scaled and name == "multi_head_attention_forward":
            with _inner_functions_seen(), self:
                return func(*args, **kwargs)
        if self._scaled and name in _STACKED:
            return _layer_by_layer(func, args)
        if name in _SORTS and "out" not in kwargs:
            return _stably_sorted(func, args, kwargs)
        if name == "topk" and "out" not in kwargs and (args or (kwargs["input"],))[0].ndim:
            return _stable_topk(*args, **kwargs)
        if name == "_standard_gamma":
            self._note_noise(name, args[0])
            return args[0]  # the mean, with its gradient
        if name == "gumbel_softmax":
            self._note_noise(name, args[0] if args else kwargs["logits"])
            return _softmax_of_equal_draws(*args, **kwargs)
        return NotImplemented

    def _note_noise(self, name: str, like: torch.Tensor) -> None:
        self.drawn[name] = None
        if self._masks is not None:
            self._masks.add(name, like.shape, NOISE)

    def _dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = dict(zip(("input", "p", "training", "inplace"), args, strict=False)) | kwargs
        probability = float(named.get("p", 0.5))
        # Of torch.nn.functional's, alpha dropouts are inactive if nothing is said.
        training = named.get("training", named.get("train", name not in _ALPHA))
        if self._note is not None:
            self._note(probability if training else 0.0)
        source = named["input"]
        if not training or probability == 0.0:
            return source
        if self._masks is not None:
            self._masks.add(name, shape_of_draws(source.shape, name in _BY_CHANNEL))
        factor, shift = self._affine(name, probability)
        if named.get("inplace", False) or name.endswith("_"):
            return source if (factor, shift) == (1.0, 0.0) else source.mul_(factor).add_(shift)
        return source if (factor, shift) == (1.0, 0.0) else source * factor + shift

    def _affine(self, name: str, probability: float) -> tuple[float, float]:
        """What happens to an element that is kept: a factor and a shift."""
        if probability == 1.0:
            return 0.0, 0.0
        if name in _ALPHA:
            factor = ((1.0 - probability) * (1.0 + probability * _LOWEST**2)) ** -0.5
            return factor, -factor * _LOWEST * probability
        return (1.0 / (1.0 - probability) if self._scaled else 1.0), 0.0

    def _attention(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Attention whose weights are all kept."""
        probability = args[4] if len(args) > 4 else kwargs.pop("dropout_p", 0.0)
        if len(args) > 4:
            args = (*args[:4], 0.0, *args[5:])
        found = func(*args, **kwargs)
        if not probability:
            return found
        if self._note is not None:
            self._note(float(probability))
        if self._masks is not None:
            query, key = args[:2] if len(args) > 1 else (kwargs["query"], kwargs["key"])
            self._masks.add(func.__name__, (*query.shape[:-1], key.shape[-2]))
        return found / (1.0 - probability) if self._scaled and probability < 1 else found


def _kind(name: str) -> str | None:
    """The kind of what a function draws; None where it draws nothing or runs others that do."""
    if name in _MASKS:
        return MASKS
    return NOISE if name in _NOISE else None


def _with_mean_slope(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """RReLU as in inference: its slope is the mean of those that it may draw."""
    if len(args) > 3:
        return func(*args[:3], False, *args[4:], **kwargs)
    return func(*args, **{**kwargs, "training": False})


def _layer_by_layer(func: Any, args: tuple[Any, ...]) -> Any:
    """A stacked recurrent layer whose dropout between the layers keeps everything, scaled."""
    packed = isinstance(args[3], (list, tuple))
    first, (state, weights, has_bias, layers, rate, *rest) = args[: 1 + packed], args[1 + packed :]
    if layers == 1 or not rate or not rest[0]:
        return func(*args)
    states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    size, directions = len(weights) // layers, len(states[0]) // layers
    value, last = first[0], []
    for layer in range(layers):
        own = tuple(s[layer * directions : (layer + 1) * directions] for s in states)
        given = own if len(own) > 1 else own[0]
        part = weights[layer * size : (layer + 1) * size]
        value, *ends = func(value, *first[1:], given, part, has_bias, 1, 0.0, *rest)
        last.append(ends)
        if layer + 1 < layers:
            value = value / (1.0 - rate) if rate < 1 else torch.zeros_like(value)
    return (value, *[torch.cat(parts) for parts in zip(*last, strict=True)])


@contextlib.contextmanager
def _inner_functions_seen() -> Iterator[None]:
    """Let torch's attention run its own functions under the mode that is active.

    It would hand itself to the mode again, for ever.
    """
    place: Any = nn.functional
    before = place.has_torch_function
    place.has_torch_function = lambda _: False
    try:
        yield
    finally:
        place.has_torch_function = before


def _stably_sorted(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {**dict(zip(("dim", "descending"), args[1:], strict=False)), **kwargs}
    return func(args[0] if args else named.pop("input"), **{**named, "stable": True})


def _stable_topk(
    input: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    axis: int | None = None,
) -> Any:
    dim = dim if axis is None else axis
    values, positions = torch.sort(input, stable=True, dim=dim, descending=largest)
    found = values.narrow(dim, 0, k), positions.narrow(dim, 0, k)
    return torch.return_types.topk(found)


def _softmax_of_equal_draws(
    logits: torch.Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> torch.Tensor:
    """`gumbel_softmax` where the noise of all classes is the same."""
    soft = (logits / tau).softmax(dim)
    if not hard:
        return soft
    chosen = torch.zeros_like(logits).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


@contextlib.contextmanager
def neutral_chance(
    modules: Iterable[nn.Module],
    note: Callable[[float], None] | None = None,
    scaled: bool = False,
    masks: MaskDraws | None = None,
    live: frozenset[str] = frozenset(),
) -> Iterator[NeutralChance]:
    """No chance anywhere inside: functional and module dropout, RNNs, attention, draws.

    live: the kinds of draws that stay as they are.
    """
    changed: list[tuple[Any, float, Any]] = []
    try:
        for module in modules if MASKS not in live else ():
            if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)) and module.dropout:
                if scaled and isinstance(module, nn.MultiheadAttention):
                    continue  # its own functions are seen, and heard of
                handle = module.register_forward_pre_hook(_noting(note, module.dropout))
                changed.append((module, module.dropout, handle))
                if not scaled:
                    module.dropout = 0.0
        with python_chance_fixed(), NeutralChance(note, scaled, masks, live) as mode:
            yield mode
    finally:
        for module, probability, handle in changed:
            module.dropout = probability
            handle.remove()


def _noting(
    note: Callable[[float], None] | None, probability: float
) -> Callable[[nn.Module, Any], None]:
    def before(module: nn.Module, _: Any) -> None:
        if note is not None:
            note(probability if module.training and getattr(module, "num_layers", 2) > 1 else 0.0)

    return before


_SPATIAL: dict[type, int] = {nn.Dropout1d: 1, nn.Dropout3d: 3}


def measure_dropout(name: str, module: nn.Module, occurrence: int, seed: int = 0) -> DropoutSite:
    """Run a dropout module twice with the same draws: what is the same was dropped.

    Alpha dropout gives what it drops a number other than zero, whatever it was.
    """
    ones = torch.ones(probe_shape(_SPATIAL.get(type(module), 2)))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = module(ones.clone())
        torch.manual_seed(seed)
        second = module(2.0 * ones)
    dropped = (first == second).numpy()
    change = (second - first)[first != second]
    return site_of(name, occurrence, dropped, float(change.mean()) if change.numel() else 0.0)
