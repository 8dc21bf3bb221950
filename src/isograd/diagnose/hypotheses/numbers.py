"""Plain numbers beside a tensor: left out, with the other sign, inverted, off by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import Example, FunctionHypothesis, other_argument
from isograd.frameworks.base import FunctionSite

#: What leaves the tensor as it is, and the words, by function.
_NEUTRAL = {"add": 0, "sub": 0, "rsub": 0, "mul": 1, "div": 1}
_WORDS = {
    "add": "{port} is added to a tensor instead of {reference}",
    "sub": "{port} is subtracted from a tensor instead of {reference}",
    "rsub": "a tensor is subtracted from {port} instead of {reference}",
    "mul": "a tensor is multiplied by {port} instead of {reference}",
    "div": "a tensor is divided by {port} instead of {reference}",
}
_LINEAR = {"f": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")}
_EXAMPLES = {
    "add": (
        Example("x * (1 + self.f(x))", "x * self.f(x)", ((4, 8),), _LINEAR, port_value=0),
        Example("torch.tanh(x + 2)", "ops.tanh(x + 1)", ((4, 8),), port_value=1),
    ),
    "sub": (Example("torch.tanh(x - 0.5)", "ops.tanh(x + 0.5)", ((4, 8),), port_value=-0.5),),
    "rsub": (Example("x * (1 - x.sigmoid())", "-x * ops.sigmoid(x)", ((4, 8),), port_value=0),),
    "mul": (
        Example(
            "torch.sin(self.f(x) * 4)",
            "ops.sin(self.f(x) / 4)",
            ((4, 8),),
            _LINEAR,
            port_value=0.25,
        ),
    ),
    "div": (Example("torch.exp(-x / 4)", "ops.exp(-x / 3)", ((4, 8),), port_value=3),),
}


def _others(function: str) -> Any:
    def candidates(own: Any, site: FunctionSite) -> Iterator[float]:
        if isinstance(own, bool) or not isinstance(own, (int, float)) or not own:
            return
        yield _NEUTRAL[function]
        if function in ("mul", "div"):
            yield 1.0 / own
        yield -own
        if isinstance(own, int) and abs(own) > 1:  # a count, or the last of so many
            yield own - 1
            yield own + 1

    return candidates


HYPOTHESES: tuple[FunctionHypothesis, ...] = tuple(
    other_argument(
        f"number_{function}",
        "number.other",
        (function,),
        "other",
        _others(function),
        _WORDS[function],
        rank=7,
        examples=_EXAMPLES[function],
    )
    for function in _NEUTRAL
)
