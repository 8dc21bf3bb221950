"""GELU and its approximations, by torch's function and by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.activations import always
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
    operands,
    other_argument,
)
from isograd.frameworks.base import FunctionSite, Operand

#: The constant of the cubic term in GELU's approximation by tanh.
_CUBIC = 0.044715


def _quick_gelu(call: Call, values: Values) -> Any:
    import torch

    x = call["input"]
    return x * torch.sigmoid(1.702 * x)


def _propose_erf(site: FunctionSite, context: Context) -> Iterator[Values]:
    """`erf` as GELU has it: of x over the root of two, then plus one."""
    argument = context.producer(site.arguments.get("input"))
    if argument is None or argument.place.function not in ("div", "mul"):
        return
    number = argument.arguments.get("other")
    roots = (math.sqrt(2.0), math.sqrt(0.5))
    if isinstance(number, float) and any(math.isclose(number, r, rel_tol=1e-3) for r in roots):
        yield {"approximate": "tanh"}


def _erf_by_tanh(call: Call, values: Values) -> Any:
    import torch

    x = call["input"] * math.sqrt(2.0)
    return torch.tanh(math.sqrt(2.0 / math.pi) * (x + _CUBIC * x**3))


def _propose_tanh(site: FunctionSite, context: Context) -> Iterator[Values]:
    """`tanh` as GELU has it: its cubic term's constant is among the steps before."""
    front = [site]
    for _ in range(4):
        front = [p for s in front for o in operands(s) for p in [context.producer(o)] if p]
        for step in front:
            for value in step.arguments.values():
                if isinstance(value, float) and math.isclose(value, _CUBIC, rel_tol=1e-3):
                    yield {"approximate": "none"}
                    return


def _tanh_by_erf(call: Call, values: Values) -> Any:
    """The cubic that tanh is given is solved for x, of which erf is taken."""
    import torch

    wanted = call["input"] * math.sqrt(math.pi / 2.0)
    inner = 1.5 * wanted * math.sqrt(3.0 * _CUBIC)
    x = 2.0 / math.sqrt(3.0 * _CUBIC) * torch.sinh(torch.asinh(inner) / 3.0)
    return torch.erf(x * math.sqrt(0.5))


def _propose_gate(site: FunctionSite, context: Context) -> Iterator[Values]:
    """x · sigmoid(c · x): the sigmoid's number is another, or the whole is another GELU."""
    argument = context.producer(site.arguments.get("input"))
    number = None if argument is None else argument.arguments.get("other")
    if argument is None or argument.place.function != "mul" or not isinstance(number, float):
        return
    source = argument.arguments.get("input")
    for product in context.consumers(site):
        if product.place.function == "mul" and isinstance(source, Operand):
            if source.source in [o.source for o in operands(product)]:
                for form in ("none", "tanh"):
                    yield {"approximate": form, "number": number}


def _gate_of_gelu(call: Call, values: Values) -> Any:
    """What x is multiplied by in GELU, from what the sigmoid is given."""
    import torch

    x = call["input"] / values["number"]
    if values["approximate"] == "none":
        return 0.5 * (1.0 + torch.erf(x * math.sqrt(0.5)))
    return 0.5 * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + _CUBIC * x**3)))


HYPOTHESES = (
    other_argument(
        "gelu_approximate",
        "gelu.approximate",
        ("gelu",),
        "approximate",
        lambda own, site: ("tanh" if own == "none" else "none",),
        "GELU computed by approximate={port} instead of {reference}",
        rank=1,
        quiet=True,
        examples=(
            Example("F.gelu(x)", "ops.gelu(x, approximate='tanh')", port_value="tanh"),
            Example(
                "self.act(x)",
                "self.act(x)",
                modules={"act": ("nn.GELU()", "nn.GELU()")},
                port_value="tanh",
            ),
        ),
    ),
    FunctionHypothesis(
        "gelu_quick",
        "gelu.approximate",
        ("gelu",),
        always,
        _quick_gelu,
        "GELU approximated by x * sigmoid(1.702 x) instead of {reference}",
        reference_value=lambda site, context: site.arguments.get("approximate", "none"),
        port_value=lambda values: "sigmoid",
        quiet=True,
        rank=1,
        examples=(Example("F.gelu(x)", "x * ops.sigmoid(1.702 * x)", port_value="sigmoid"),),
    ),
    FunctionHypothesis(
        "gelu_by_erf",
        "gelu.approximate",
        ("erf",),
        _propose_erf,
        _erf_by_tanh,
        "GELU computed by tanh instead of erf",
        reference_value=lambda site, context: "none",
        port_value=lambda values: values["approximate"],
        quiet=True,
        rank=1,
        examples=(
            Example(
                "x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))",
                "ops.gelu(x, approximate='tanh')",
                port_value="tanh",
            ),
        ),
    ),
    FunctionHypothesis(
        "gelu_by_tanh",
        "gelu.approximate",
        ("tanh",),
        _propose_tanh,
        _tanh_by_erf,
        "GELU computed by erf instead of tanh",
        reference_value=lambda site, context: "tanh",
        port_value=lambda values: values["approximate"],
        quiet=True,
        rank=1,
        examples=(
            Example(
                "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))",
                "ops.gelu(x)",
                port_value="none",
            ),
        ),
    ),
    FunctionHypothesis(
        "gelu_by_sigmoid",
        "gelu.approximate",
        ("sigmoid",),
        _propose_gate,
        _gate_of_gelu,
        "GELU computed by approximate={port} instead of by a sigmoid",
        reference_value=lambda site, context: "sigmoid",
        port_value=lambda values: values["approximate"],
        quiet=True,
        rank=1,
        examples=(Example("x * torch.sigmoid(1.702 * x)", "ops.gelu(x)", port_value="none"),),
    ),
)
