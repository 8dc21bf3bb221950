"""Chance taken out: dropout passes its input, and random draws are constants.

The two frameworks' generators cannot be made to agree, so while networks are compared every draw
is the same on both sides, whatever its order: a uniform number is 0.5, a normal one half a
deviation above the mean, an exponential one the median, a whole one in the middle of its range, a
permutation the reverse, a Bernoulli or multinomial one the likeliest outcome.  Dropout's own rates
are noted and compared apart.  Draws that are sorted (`argsort(rand(n))` chooses patches) are all
equal then: sorting keeps the order of equal elements, and of those `topk` takes the first.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from isograd.frameworks.base import DropoutSite

_DROPOUTS = frozenset(
    """dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_
    feature_alpha_dropout feature_alpha_dropout_ dropout1d dropout2d dropout3d""".split()
)
_UNIFORM = frozenset("rand rand_like".split())
_NORMAL = frozenset("randn randn_like".split())
_SORTS = frozenset("sort argsort".split())


class NeutralChance(TorchFunctionMode):
    """Replaces dropout and random draws; `note` hears of each functional dropout."""

    def __init__(self, note: Callable[[float], None] | None = None) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _DROPOUTS:
            return self._dropout(args, kwargs)
        if name == "scaled_dot_product_attention":
            return func(*self._without_dropout(args, kwargs), **kwargs)
        if name in _SORTS and "out" not in kwargs:
            return _stably_sorted(func, args, kwargs)
        if name == "topk" and "out" not in kwargs and (args or (kwargs["input"],))[0].ndim:
            return _stable_topk(*args, **kwargs)
        if name == "gumbel_softmax":
            return _softmax_of_equal_draws(*args, **kwargs)
        result = func(*args, **kwargs)
        drawn = _constant(name, args, kwargs, result)
        if drawn is None:
            return result
        with torch.no_grad():
            return result.copy_(drawn) if isinstance(drawn, torch.Tensor) else result.fill_(drawn)

    def _dropout(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source = args[0] if args else kwargs["input"]
        probability = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
        training = args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
        if self._note is not None:
            self._note(float(probability) if training else 0.0)
        return source

    def _without_dropout(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        probability = args[4] if len(args) > 4 else kwargs.pop("dropout_p", 0.0)
        if probability and self._note is not None:
            self._note(float(probability))
        return (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args


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


def _whole(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The middle of what `randint` and its like may draw; 0 without an upper bound."""
    numbers = [part for part in args if isinstance(part, Real)]
    has_low = len(numbers) > 1 or (numbers and ("high" in kwargs or "to" in kwargs))
    low = kwargs.get("low", kwargs.get("from", numbers[0] if has_low else 0))
    high = kwargs.get("high", kwargs.get("to", numbers[-1] if numbers else None))
    return 0 if high is None else int(low + (high - low) // 2)


def _likeliest(weights: torch.Tensor, count: int, replacement: bool = False) -> torch.Tensor:
    """The positions that `multinomial` is likeliest to draw."""
    order = torch.argsort(weights, dim=-1, descending=True, stable=True)
    if replacement:
        return order[..., :1].expand(*order.shape[:-1], count)
    return order[..., :count]


def _constant(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """What a random function yields instead, or None where the function draws nothing."""
    if not isinstance(result, torch.Tensor):
        return None
    if name in _UNIFORM or name in _NORMAL:
        return 0.5
    if name in ("randint", "randint_like", "random_"):
        given = args[1:] if name != "randint" else args
        return _whole(given, kwargs)
    if name == "randperm":
        return torch.arange(len(result)).flip(0)
    if name == "multinomial":
        named = dict(zip(("input", "num_samples", "replacement"), args, strict=False))
        named |= kwargs
        return _likeliest(named["input"], named["num_samples"], named.get("replacement", False))
    if name == "exponential_":
        return math.log(2) / (args[1] if len(args) > 1 else kwargs.get("lambd", 1.0))
    if name == "uniform_":
        low = args[1] if len(args) > 1 else kwargs.get("from", 0.0)
        high = args[2] if len(args) > 2 else kwargs.get("to", 1.0)
        return 0.5 * (low + high)
    if name in ("normal_", "normal"):
        mean = args[1] if name == "normal_" and len(args) > 1 else kwargs.get("mean", 0.0)
        deviation = args[2] if name == "normal_" and len(args) > 2 else kwargs.get("std", 1.0)
        if name == "normal" and args:
            mean, deviation = args[0], args[1] if len(args) > 1 else deviation
        return mean + 0.5 * deviation
    if name in ("bernoulli", "bernoulli_"):
        likely = (
            args[1] if len(args) > 1 else kwargs.get("p", 0.5 if name == "bernoulli_" else None)
        )
        likely = args[0] if likely is None else likely
        if isinstance(likely, torch.Tensor):
            return (likely >= 0.5).to(result.dtype)
        return float(likely >= 0.5)
    return None


@contextlib.contextmanager
def neutral_chance(
    modules: Iterable[nn.Module], note: Callable[[float], None] | None = None
) -> Iterator[None]:
    """No chance anywhere inside: functional and module dropout, RNNs, attention, draws."""
    changed: list[tuple[Any, float, Any]] = []
    try:
        for module in modules:
            if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)) and module.dropout:
                handle = module.register_forward_pre_hook(_noting(note, module.dropout))
                changed.append((module, module.dropout, handle))
                module.dropout = 0.0
        with NeutralChance(note):
            yield
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


def measure_dropout(name: str, module: nn.Module, occurrence: int) -> DropoutSite:
    """Run a dropout module on ones: which share becomes zero, and what is the rest scaled by."""
    with torch.no_grad():
        out = module(torch.ones(64, 64, 4, 4))
    kept = out[out != 0]
    share = 1.0 - kept.numel() / out.numel()
    return DropoutSite(name, occurrence, share, float(kept.mean()) if kept.numel() else 0.0)
