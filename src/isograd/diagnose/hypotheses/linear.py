"""Linear layers: their bias and the layout of their weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.convolution_weights import missing_bias
from isograd.diagnose.hypotheses.geometry import (
    rank_of,
)
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand


def _propose_transposed(site: FunctionSite, context: Context) -> Iterator[Values]:
    name = "weight" if site.place.function == "linear" else "other"
    weight = site.arguments.get(name)
    if not isinstance(weight, Operand) or rank_of(weight) != 2:
        return
    if site.place.function != "linear" and not weight.source.startswith("parameter."):
        return
    if weight.shape[0] == weight.shape[1]:
        yield {"argument": name}


def _transposed(call: Call, values: Values) -> Any:
    name = values["argument"]
    return call.run(**{name: call[name].transpose(0, 1)})


HYPOTHESES = (
    missing_bias(
        "linear_bias",
        "linear.bias",
        ("linear",),
        Example(
            "self.fc(x)",
            "ops.matmul(x, self.fc.weight.T) + 0 * self.fc.bias",
            modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)")},
        ),
    ),
    FunctionHypothesis(
        "linear_transposed",
        "linear.transposed",
        ("linear", "matmul"),
        _propose_transposed,
        _transposed,
        "{function} with the weight transposed",
        reference_value=lambda site, context: "as held",
        port_value=lambda values: "transposed",
        rank=3,
        examples=(
            Example(
                "self.fc(x)",
                "ops.matmul(x, self.fc.weight) + self.fc.bias",
                modules={"fc": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")},
            ),
        ),
    ),
)
