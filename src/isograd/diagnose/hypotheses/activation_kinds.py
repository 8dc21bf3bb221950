"""Another activation than the reference's, a missing one, one too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import is_closed
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite

#: Functions of torch that this file takes for activations, by the kind they are.
KINDS = {
    **{name: name for name in ("relu", "elu", "gelu", "silu", "selu", "mish", "sigmoid", "tanh")},
    **{name: name for name in ("softplus", "softsign", "hardswish", "hardsigmoid", "celu")},
    "leaky_relu": "leaky_relu 0.01",
    "relu6": "relu6",
    "hardtanh": "hardtanh",
    "log_sigmoid": "log_sigmoid",
    "prelu": "prelu",
}
#: Behind these an activation is often put, or forgotten.
_LAYERS = (
    *(f"conv{n}d" for n in "123"),
    *(f"conv_transpose{n}d" for n in "123"),
    *("linear", "batch_norm", "layer_norm", "group_norm", "instance_norm"),
)
_ADDED = ("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu 0.01")


def _functions() -> dict[str, Callable[[Any], Any]]:
    import torch
    from torch.nn import functional

    return {
        "none": lambda x: x * 1.0,
        "relu": torch.relu,
        "leaky_relu 0.01": lambda x: functional.leaky_relu(x, 0.01),
        "leaky_relu 0.1": lambda x: functional.leaky_relu(x, 0.1),
        "leaky_relu 0.2": lambda x: functional.leaky_relu(x, 0.2),
        "elu": functional.elu,
        "gelu": functional.gelu,
        "gelu tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu6": functional.relu6,
        "softplus": functional.softplus,
        "hardswish": functional.hardswish,
        "hardsigmoid": functional.hardsigmoid,
        "hardsigmoid 0.2": lambda x: (0.2 * x + 0.5).clamp(0.0, 1.0),
        "hardtanh": functional.hardtanh,
        "selu": functional.selu,
        "mish": functional.mish,
        "softsign": functional.softsign,
        "log_sigmoid": functional.logsigmoid,
        "softmax": lambda x: functional.softmax(x, -1),
    }


#: Names only, so that nothing is imported to propose.
_NAMES = (
    *("none", "relu", "leaky_relu 0.01", "leaky_relu 0.1", "leaky_relu 0.2", "elu", "gelu"),
    *("gelu tanh", "silu", "sigmoid", "tanh", "relu6", "softplus", "hardswish", "hardsigmoid"),
    *("hardsigmoid 0.2", "hardtanh", "selu", "mish", "softsign", "log_sigmoid", "softmax"),
)


def _own(site: FunctionSite) -> str:
    if site.place.function == "gelu" and site.arguments.get("approximate") == "tanh":
        return "gelu tanh"
    return KINDS.get(site.place.function, site.place.function)


def _propose_other(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Sigmoid and tanh are also gates and parts of formulas: then nothing represents them."""
    own = _own(site)
    for kind in _NAMES:
        if site.place.function == "leaky_relu" and kind.startswith("leaky_relu"):
            continue  # the slope is a cause of its own
        if kind != own and not (kind == "softmax" and own not in ("sigmoid", "relu", "tanh")):
            yield {"kind": kind}


def _other(call: Call, values: Values) -> Any:
    return _functions()[values["kind"]](call["input"] if "input" in call.arguments else call["0"])


def _propose_added(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.place.function == "module":
        if not is_closed(site, context) or site.kind in ("Embedding", "Identity", "Dropout"):
            return
        if len(site.outputs) != 1 or not site.outputs[0].dtype.startswith("float"):
            return
    if any(c.place.function in KINDS for c in context.consumers(site)):
        return
    for kind in _ADDED:
        yield {"kind": kind}


def _added(call: Call, values: Values) -> Any:
    return _functions()[values["kind"]](call.run())


HYPOTHESES = (
    FunctionHypothesis(
        "activation_kind",
        "activation.kind",
        tuple(KINDS),
        _propose_other,
        _other,
        "activation {port} instead of {reference}",
        reference_value=lambda site, context: _own(site),
        port_value=lambda values: values["kind"],
        rank=6,
        examples=(
            Example("F.relu(x)", "ops.elu(x)", port_value="elu"),
            Example("F.elu(x)", "ops.relu(x)", port_value="relu"),
            Example(
                "self.act(self.fc(x))",
                "self.act(self.fc(x))",
                modules={
                    "fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)"),
                    "act": ("nn.SiLU()", "nn.ReLU()"),
                },
                port_value="relu",
            ),
            Example(
                "torch.tanh(self.fc(x)) + 1",
                "self.fc(x) + 1",
                modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)")},
                port_value="none",
            ),
        ),
    ),
    FunctionHypothesis(
        "activation_added",
        "activation.kind",
        (*_LAYERS, "module"),
        _propose_added,
        _added,
        "activation {port} behind {function}, where the reference has none",
        reference_value=lambda site, context: "none",
        port_value=lambda values: values["kind"],
        rank=7,
        examples=(
            Example(
                "self.fc(x) * 2",
                "ops.relu(self.fc(x)) * 2",
                modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)")},
                port_value="relu",
            ),
            Example(
                "self.fc(x)",
                "self.fc(x)",
                modules={
                    "fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5, activation='tanh')"),
                },
                port_value="tanh",
            ),
        ),
    ),
)
