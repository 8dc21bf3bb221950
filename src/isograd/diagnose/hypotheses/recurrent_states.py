"""Recurrent layers: axes, directions and final states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypotheses.recurrent import weights_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

_MODULES = ("LSTM", "GRU", "RNN")

#: Names of a cell's weights: of the input, of the state, and their biases.
_CELL_WEIGHTS = ("w_ih", "w_hh", "b_ih", "b_hh")


def _is_given(site: FunctionSite, context: Context) -> bool:
    return site.kind in _MODULES and not flow_of(context).is_computed(site)


def _batch_first(site: FunctionSite, context: Context) -> Iterator[Values]:
    given = site.arguments.get("input")
    if given is not None and len(given.shape) == 3:
        yield {"batch_first": not site.arguments.get("batch_first", False)}


def _other_axis(call: Call, values: Values) -> Any:
    """The layer with time and batch exchanged; a state for so many sequences begins at zero."""
    import torch

    x = call["input"]
    sequences = x.shape[0] if values["batch_first"] else x.shape[1]

    def fitting(state: Any) -> Any:
        if state.shape[1] == sequences:
            return state
        return torch.zeros(
            state.shape[0], sequences, state.shape[2], dtype=state.dtype, device=state.device
        )

    hx = call["hx"]
    states = tuple(fitting(s) for s in hx) if isinstance(hx, (tuple, list)) else fitting(hx)
    return call.run(hx=states, batch_first=values["batch_first"])


def _directions(site: FunctionSite, context: Context) -> Iterator[Values]:
    both = site.arguments.get("bidirectional") is True
    if _is_given(site, context) and site.outputs:
        yield from ({"how": how} for how in ("exchanged", "not turned back", "input reversed"))
    elif site.place.function in _LAYERS:
        hows = ("exchanged", "not turned back", "forward twice", "backward missing")
        yield from ({"how": how} for how in (hows if both else ("reversed", "input reversed")))


def _other_direction(call: Call, values: Values) -> Any:
    import torch

    how = values["how"]
    if how == "reversed":
        axis = 1 if call.arguments.get("batch_first") else 0
        result = call.run(input=call["input"].flip(axis))
        return (result[0].flip(axis), *result[1:])
    if how == "input reversed":
        batch_first = call.arguments.get("batch_first", getattr(call.module, "batch_first", False))
        name = "input" if "input" in call.arguments else next(iter(call.arguments))
        return call.run(**{name: call[name].flip(1 if batch_first else 0)})
    if how == "forward twice":
        weights = weights_of(call)
        each = len(weights) // (2 * call["layers"])
        for start in range(0, len(weights), 2 * each):
            weights[start + each : start + 2 * each] = weights[start : start + each]
        return call.run(weights=weights)
    result = call.run()
    states = result[0] if isinstance(result, (tuple, list)) else result
    first, second = states.chunk(2, -1)
    if how == "exchanged":
        changed = torch.cat((second, first), -1)
    elif how == "backward missing":
        changed = torch.cat((first, torch.zeros_like(second)), -1)
    else:
        batch_first = call.arguments.get("batch_first", getattr(call.module, "batch_first", False))
        changed = torch.cat((first, second.flip(1 if batch_first else 0)), -1)
    return (changed, *result[1:]) if isinstance(result, (tuple, list)) else changed


_DIRECTIONS = {
    "exchanged": "the two directions of the output exchanged",
    "not turned back": "the backward direction's output in reversed time",
    "forward twice": "the forward weights for both directions",
    "backward missing": "zeros for the backward direction",
    "reversed": "the sequence read backwards",
    "input reversed": "the sequence read backwards, and the output left in that order",
}


def _last_steps(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The final states that a layer yields besides its outputs."""
    layers = site.arguments.get("layers", 1)
    directions = 2 if site.arguments.get("bidirectional") else 1
    states: tuple[str, ...] = ("hidden", "cell") if site.place.function == "lstm" else ("hidden",)
    if site.place.function == "module":
        if not _is_given(site, context) or len(site.outputs) < 2:
            return
        directions = max(1, site.outputs[0].shape[-1] // site.outputs[1].shape[-1])
        layers = site.outputs[1].shape[0] // directions
        states = ("hidden", "cell")[: len(site.outputs) - 1]
    for state in states:
        yield {"state": state, "how": "initial", "directions": directions}
        if layers > 1 or directions > 1:
            yield {"state": state, "how": "first layer last", "directions": directions}
        if directions > 1:
            yield {"state": state, "how": "directions before layers", "directions": directions}
            yield {"state": state, "how": "directions exchanged", "directions": directions}
    if directions > 1:
        yield {"state": "hidden", "how": "outputs of the last step", "directions": directions}
    if len(states) > 1:
        yield {"state": "both", "how": "exchanged", "directions": directions}


def _other_states(call: Call, values: Values) -> Any:
    import torch

    result = call.run()
    nested = isinstance(result[1], (tuple, list))  # of a module: (outputs, (hidden, cell))
    outputs, states = result[0], list(result[1] if nested else result[1:])

    def whole() -> Any:
        return (outputs, tuple(states)) if nested else (outputs, *states)

    if values["how"] == "exchanged":
        states.reverse()
        return whole()
    place = 1 if values["state"] == "cell" else 0
    state, directions = states[place], values["directions"]
    apart = state.unflatten(0, (-1, directions))
    if values["how"] == "initial":
        hx = call.arguments.get("hx", call.arguments.get("1"))
        hx = hx[place] if isinstance(hx, (tuple, list)) else hx
        state = torch.zeros_like(state) if hx is None else hx
    elif values["how"] == "first layer last":
        state = apart.flip(0).flatten(0, 1)
    elif values["how"] == "directions before layers":
        state = apart.transpose(0, 1).flatten(0, 1)
    elif values["how"] == "directions exchanged":
        state = apart.flip(1).flatten(0, 1)
    else:
        first = call.arguments.get("batch_first", getattr(call.module, "batch_first", False))
        last = outputs[:, -1] if first else outputs[-1]
        ends = torch.stack(last.chunk(directions, -1))
        state = torch.cat((state[:-directions], ends))
    states[place] = state
    return whole()


def _net(torch: str, mindspore: str) -> dict[str, tuple[str, str]]:
    return {"r": (torch, mindspore)}


_X = ((3, 5, 4),)

_LSTM = _net("nn.LSTM(4, 6, batch_first=True)", "nn.LSTM(4, 6, batch_first=True)")

_BOTH = _net(
    "nn.LSTM(4, 6, batch_first=True, bidirectional=True)",
    "nn.LSTM(4, 6, batch_first=True, bidirectional=True)",
)

HYPOTHESES = (
    FunctionHypothesis(
        "rnn_batch_first",
        "rnn.batch_first",
        _LAYERS,
        _batch_first,
        _other_axis,
        "batch_first={port} instead of {reference}",
        argument="batch_first",
        rank=2,
        examples=(
            Example("self.r(x)[0]", "self.r(x)[0]", _X, _net(_LSTM["r"][0], "nn.LSTM(4, 6)")),
        ),
    ),
    FunctionHypothesis(
        "rnn_direction",
        "rnn.direction",
        (*_LAYERS, "module"),
        _directions,
        _other_direction,
        "{port}",
        rank=3,
        port_value=lambda values: _DIRECTIONS[values["how"]],
        examples=(
            Example(
                "self.r(x)[0] * 2",
                "a, b = ops.chunk(self.r(x)[0], 2, -1)\nreturn ops.cat((b, a), -1) * 2",
                _X,
                _BOTH,
                port_value="the two directions of the output exchanged",
            ),
            Example(
                "self.r(x)[0] * 2",
                "a, b = ops.chunk(self.r(x)[0], 2, -1)\n"
                "return ops.cat((a, ops.flip(b, (1,))), -1) * 2",
                _X,
                _BOTH,
                port_value="the backward direction's output in reversed time",
            ),
            Example(
                "self.r(x * 2)[0]",
                "self.r(ops.flip(x * 2, (1,)))[0]",
                _X,
                _LSTM,
                port_value="the sequence read backwards, and the output left in that order",
            ),
        ),
    ),
    FunctionHypothesis(
        "rnn_state",
        "rnn.state",
        (*_LAYERS, "module"),
        _last_steps,
        _other_states,
        "the final state ({state}): {port}",
        rank=4,
        port_value=lambda values: values["how"],
        examples=(
            Example(
                "h = self.r(x)[1][0]\nreturn torch.cat((h[0], h[1]), -1)",
                "self.r(x)[0][:, -1]",
                _X,
                _BOTH,
                proved=False,
            ),
        ),
    ),
)
