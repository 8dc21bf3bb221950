"""What torch's random functions yield while chance is taken out."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch

_UNIFORM = frozenset("rand rand_like".split())
#: What masks are made of: dropout by hand, stochastic depth, DropBlock.
MASKING = _UNIFORM | frozenset("uniform_ bernoulli bernoulli_".split())
_Arguments = tuple[Any, ...]
_Keywords = dict[str, Any]


def constant_draw(name: str, args: _Arguments, kwargs: _Keywords, result: Any) -> Any:
    """The constant, or None where the function draws nothing."""
    rule = _RULES.get(name)
    if rule is None or not isinstance(result, torch.Tensor):
        return None
    return rule(args, kwargs, result)


def _central(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> float:
    return 0.5


def _whole(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> int:
    """The middle of what `randint` and its like may draw; 0 without an upper bound."""
    numbers = [part for part in args if isinstance(part, Real)]
    has_low = len(numbers) > 1 or (numbers and ("high" in kwargs or "to" in kwargs))
    low = kwargs.get("low", kwargs.get("from", numbers[0] if has_low else 0))
    high = kwargs.get("high", kwargs.get("to", numbers[-1] if numbers else None))
    return 0 if high is None else int(low + (high - low) // 2)


def _reverse(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> torch.Tensor:
    return torch.arange(len(result)).flip(0)


def _likeliest(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> torch.Tensor:
    """The positions that `multinomial` is likeliest to draw."""
    named = dict(zip(("input", "num_samples", "replacement"), args, strict=False)) | kwargs
    weights, count = named["input"], named["num_samples"]
    order = torch.argsort(weights, dim=-1, descending=True, stable=True)
    if named.get("replacement", False):
        return order[..., :1].expand(*order.shape[:-1], count)
    return order[..., :count]


def _exponential(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> float:
    rate: float = args[1] if len(args) > 1 else kwargs.get("lambd", 1.0)
    return math.log(2) / rate


def _uniform(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    low = args[1] if len(args) > 1 else kwargs.get("from", 0.0)
    high = args[2] if len(args) > 2 else kwargs.get("to", 1.0)
    return 0.5 * (low + high)


def _normal_in_place(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    return _normal(args[1:], kwargs, result)


def _normal(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    mean = args[0] if args else kwargs.get("mean", 0.0)
    deviation = args[1] if len(args) > 1 else kwargs.get("std", 1.0)
    return mean + 0.5 * deviation


def _bernoulli(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    return _outcome(args[1] if len(args) > 1 else kwargs.get("p", args[0]), result)


def _bernoulli_in_place(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    return _outcome(args[1] if len(args) > 1 else kwargs.get("p", 0.5), result)


def _outcome(likely: Any, result: torch.Tensor) -> Any:
    if isinstance(likely, torch.Tensor):
        return (likely >= 0.5).to(result.dtype)
    return float(likely >= 0.5)


def _rate(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    return args[0] if args else kwargs["input"]


def _cauchy(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("median", 0.0)


def _log_normal(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> float:
    mean = args[1] if len(args) > 1 else kwargs.get("mean", 1.0)
    return math.exp(mean + 0.5 * (args[2] if len(args) > 2 else kwargs.get("std", 2.0)))


def _geometric(args: _Arguments, kwargs: _Keywords, result: torch.Tensor) -> float:
    success = args[1] if len(args) > 1 else kwargs["p"]
    return 1.0 if success >= 1 else math.ceil(math.log(0.5) / math.log(1.0 - success))


_RULES: dict[str, Callable[[_Arguments, _Keywords, torch.Tensor], Any]] = {
    **dict.fromkeys((*_UNIFORM, "randn", "randn_like"), _central),
    "randint": _whole,
    **dict.fromkeys(("randint_like", "random_"), lambda a, k, r: _whole(a[1:], k, r)),
    "randperm": _reverse,
    "multinomial": _likeliest,
    "exponential_": _exponential,
    "uniform_": _uniform,
    "normal": _normal,
    "normal_": _normal_in_place,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli_in_place,
    "poisson": _rate,
    "cauchy_": _cauchy,
    "log_normal_": _log_normal,
    "geometric_": _geometric,
}
#: All functions that draw.
DRAWING = frozenset(_RULES)
