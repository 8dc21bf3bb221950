"""Recurrent layers: order of the gates, biases, and where a GRU resets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

_CELLS = ("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")

_GATES = {"lstm": "ifgo", "gru": "rzn"}

#: Names of a cell's weights: of the input, of the state, and their biases.
_CELL_WEIGHTS = ("w_ih", "w_hh", "b_ih", "b_hh")


def _gates_of(function: str) -> str:
    return _GATES.get(function.removesuffix("_cell"), "")


def _orders(site: FunctionSite, context: Context) -> Iterator[Values]:
    gates = _gates_of(site.place.function)
    for order in itertools.permutations(range(len(gates))):
        if order != tuple(range(len(gates))):
            yield {"order": order, "gates": "".join(gates[i] for i in order)}


def weights_of(call: Call) -> list[Any]:
    """Weights of all layers and directions, in torch's order; of a cell, its own."""
    if call.function.endswith("_cell"):
        return [call.arguments.get(name) for name in _CELL_WEIGHTS]
    return list(call["weights"])


def _run_with(call: Call, weights: list[Any]) -> Any:
    if call.function.endswith("_cell"):
        return call.run(**dict(zip(_CELL_WEIGHTS, weights, strict=True)))
    return call.run(weights=weights)


def _reordered(call: Call, values: Values) -> Any:
    import torch

    def other(weight: Any) -> Any:
        if weight is None:
            return None
        parts = weight.chunk(len(values["order"]), 0)
        return torch.cat([parts[i] for i in values["order"]], 0)

    return _run_with(call, [other(w) for w in weights_of(call)])


def _biases(site: FunctionSite, context: Context) -> Iterator[Values]:
    has = site.arguments.get("bias") is True or site.arguments.get("b_ih") is not None
    if has:
        for which in ("hidden", "input", "both"):
            for factor in (0.0, 2.0):
                yield {"which": which, "factor": factor}
        yield {"which": "exchanged", "factor": 1.0}
        if "gru" in site.place.function:  # elsewhere only the sum of both counts
            yield {"which": "merged", "factor": 1.0}


def _other_biases(call: Call, values: Values) -> Any:
    weights = weights_of(call)
    first = 2
    for start in range(0, len(weights), 4):
        own, hidden = start + first, start + first + 1
        if values["which"] == "exchanged":
            weights[own], weights[hidden] = weights[hidden], weights[own]
        if values["which"] == "merged":
            weights[own] = weights[own] + weights[hidden]
            weights[hidden] = weights[hidden] * 0.0
        if values["which"] in ("input", "both"):
            weights[own] = weights[own] * values["factor"]
        if values["which"] in ("hidden", "both"):
            weights[hidden] = weights[hidden] * values["factor"]
    return _run_with(call, weights)


def _bias_words(values: Values) -> str:
    if values["which"] == "exchanged":
        return "input and hidden bias exchanged"
    if values["which"] == "merged":
        return "hidden bias added to the input's part"
    which = {"hidden": "hidden bias", "input": "input bias", "both": "both biases"}
    return f"{which[values['which']]} {'left out' if values['factor'] == 0 else 'added twice'}"


def _reset_before(call: Call, values: Values) -> Any:
    """A GRU whose reset gate acts on the state before the matrix, not on its product."""
    import torch

    def cell(x: Any, h: Any, weights: Any) -> Any:
        w_ih, w_hh, b_ih, b_hh = weights
        given = x @ w_ih.T + (0 if b_ih is None else b_ih)
        ir, iz, inn = given.chunk(3, -1)
        wr, wz, wn = w_hh.chunk(3, 0)
        br, bz, bn = (0.0, 0.0, 0.0) if b_hh is None else b_hh.chunk(3, 0)
        r = torch.sigmoid(ir + h @ wr.T + br)
        z = torch.sigmoid(iz + h @ wz.T + bz)
        inner = (r * h) @ wn.T + bn
        if values["how"] == "after, without the bias":
            inner = r * (h @ wn.T) + bn
        n = torch.tanh(inn + inner)
        return (1 - z) * n + z * h

    weights = weights_of(call)
    if call.function == "gru_cell":
        return cell(call["input"], call["hx"], weights)
    if call.arguments.get("layers", 1) != 1 or call.arguments.get("bidirectional"):
        raise ValueError("only of one layer")
    weights = weights if len(weights) == 4 else [*weights, None, None]
    x = call["input"].transpose(0, 1) if call["batch_first"] else call["input"]
    h, outputs = call["hx"][0], []
    for step in x:
        h = cell(step, h, weights)
        outputs.append(h)
    stacked = torch.stack(outputs)
    return (stacked.transpose(0, 1) if call["batch_first"] else stacked, h.unsqueeze(0))


def _resets(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"how": "before the product"}
    yield {"how": "after, without the bias"}


_GRU = {"r": ("nn.GRU(4, 6, batch_first=True)", "nn.GRU(4, 6, batch_first=True)")}

_CELL = {
    "a": ("nn.Linear(4, 24)", "nn.Dense(4, 24)"),
    "b": ("nn.Linear(6, 24)", "nn.Dense(6, 24)"),
}

HYPOTHESES = (
    FunctionHypothesis(
        "rnn_gate_order",
        "rnn.gate_order",
        ("lstm", "gru", "lstm_cell", "gru_cell"),
        _orders,
        _reordered,
        "the gates stand in the order {gates} instead of {reference}",
        rank=3,
        reference_value=lambda site, context: _gates_of(site.place.function),
        port_value=lambda values: values["gates"],
        examples=(
            Example(
                "h, c = torch.lstm_cell(x, (y, y * 2), self.a.weight, self.b.weight, "
                "self.a.bias, self.b.bias)\nreturn h + c",
                "i, g, f, o = ops.chunk(self.a(x) + self.b(y), 4, -1)\n"
                "c = ops.sigmoid(f) * y * 2 + ops.sigmoid(i) * ops.tanh(g)\n"
                "return ops.sigmoid(o) * ops.tanh(c) + c",
                ((3, 4), (3, 6)),
                _CELL,
                port_value="igfo",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "rnn_bias",
        "rnn.bias",
        (*_LAYERS, *_CELLS),
        _biases,
        _other_biases,
        "{port}",
        rank=3,
        port_value=_bias_words,
        examples=(
            Example(
                "h, c = torch.lstm_cell(x, (y, y * 2), self.a.weight, self.b.weight, "
                "self.a.bias, self.b.bias)\nreturn h + c",
                "i, f, g, o = ops.chunk(self.a(x) + self.b(y) - self.b.bias, 4, -1)\n"
                "c = ops.sigmoid(f) * y * 2 + ops.sigmoid(i) * ops.tanh(g)\n"
                "return ops.sigmoid(o) * ops.tanh(c) + c",
                ((3, 4), (3, 6)),
                _CELL,
                port_value="hidden bias left out",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "gru_reset_after",
        "gru.reset_after",
        ("gru", "gru_cell"),
        _resets,
        _reset_before,
        "the reset gate acts {port} instead of after the product",
        rank=3,
        port_value=lambda values: values["how"],
        examples=(
            Example(
                "torch.gru_cell(x, y, self.a.weight, self.b.weight, self.a.bias, self.b.bias)",
                "r, z, n = ops.chunk(self.a(x), 3, -1)\n"
                "s, t, _ = ops.chunk(self.b(y), 3, -1)\nr = ops.sigmoid(r + s)\n"
                "z = ops.sigmoid(z + t)\n_, _, m = ops.chunk(self.b(r * y), 3, -1)\n"
                "return (1 - z) * ops.tanh(n + m) + z * y",
                ((3, 4), (3, 6)),
                {
                    "a": ("nn.Linear(4, 18)", "nn.Dense(4, 18)"),
                    "b": ("nn.Linear(6, 18)", "nn.Dense(6, 18)"),
                },
                port_value="before the product",
                proved=False,
            ),
        ),
    ),
)
