"""torch.nn's recurrent networks and their cells: torch's gates, names and initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import layers
from isograd.runtime.starting import init_uniform, pad_sequence
from isograd.runtime.torch_convolutions import parameter
from isograd.runtime.torch_module import Module


def lstm_step(into: Any, within: Any, state: Sequence[Any], _: Any) -> tuple[Any, Any]:
    """The next hidden state and memory, from the input's and the state's share of the gates."""
    enter, forget, new, leave = ops.chunk(into + within, 4, -1)
    memory = ops.sigmoid(forget) * state[1] + ops.sigmoid(enter) * ops.tanh(new)
    return ops.sigmoid(leave) * ops.tanh(memory), memory


def gru_step(into: Any, within: Any, state: Sequence[Any], _: Any) -> tuple[Any]:
    """The next hidden state."""
    first, second = ops.chunk(into, 3, -1), ops.chunk(within, 3, -1)
    reset = ops.sigmoid(first[0] + second[0])
    update = ops.sigmoid(first[1] + second[1])
    new = ops.tanh(first[2] + reset * second[2])
    return (new + update * (state[0] - new),)


def rnn_step(into: Any, within: Any, state: Sequence[Any], nonlinearity: str) -> tuple[Any]:
    """The next hidden state."""
    return ((ops.tanh if nonlinearity == "tanh" else ops.relu)(into + within),)


def step_with(step: Any, nonlinearity: str) -> Any:
    """A step whose nonlinearity is chosen."""
    return lambda into, within, state: step(into, within, state, nonlinearity)


class RecurrentCell(Module):
    """What the cells share."""

    gates = 1
    step: Any = staticmethod(rnn_step)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.nonlinearity = input_size, hidden_size, "tanh"
        self.bias = bias
        rows = self.gates * hidden_size
        self.weight_ih = parameter(rows, input_size, dtype=dtype)
        self.weight_hh = parameter(rows, hidden_size, dtype=dtype)
        self.bias_ih = parameter(rows, dtype=dtype) if bias else None
        self.bias_hh = parameter(rows, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by the size of the state."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for own in self.parameters():
            init_uniform(own, -bound, bound)

    def _next(self, input: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        into = layers.linear(input, self.weight_ih, self.bias_ih)
        within = layers.linear(state[0], self.weight_hh, self.bias_hh)
        found: tuple[Any, ...] = type(self).step(into, within, state, self.nonlinearity)
        return found

    def _start(self, input: Any) -> Any:
        return ops.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype)

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state."""
        return self._next(input, (self._start(input) if hx is None else hx,))[0]


class LSTMCell(RecurrentCell, nn.LSTMCell):  # type: ignore[misc]
    """torch.nn.LSTMCell."""

    gates, step = 4, staticmethod(lstm_step)

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state and memory."""
        return self._next(input, (self._start(input),) * 2 if hx is None else hx)


class GRUCell(RecurrentCell, nn.GRUCell):  # type: ignore[misc]
    """torch.nn.GRUCell."""

    gates, step = 3, staticmethod(gru_step)


class RNNCell(RecurrentCell, nn.RNNCell):  # type: ignore[misc]
    """torch.nn.RNNCell."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity


class PackedSequence(NamedTuple):
    """torch.nn.utils.rnn.PackedSequence: lines of several lengths, the longest first, by steps.

    data: the first elements of all lines, then the second ones of those that have one, …;
    batch_sizes: how many lines each step has.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on another device, which a port does not ask."""
        return False

    def to(self, *_: Any, **__: Any) -> PackedSequence:
        """Itself: a port has one device."""
        return self

    def cuda(self, *_: Any, **__: Any) -> PackedSequence:
        """Itself: a port has one device."""
        return self

    def cpu(self) -> PackedSequence:
        """Itself: a port has one device."""
        return self


def _numbers(values: Any) -> Any:
    return np.asarray(values.asnumpy() if isinstance(values, ms.Tensor) else values)


def _places(sizes: Any) -> tuple[Any, Any]:
    """The step and the line of each packed element."""
    steps = np.repeat(np.arange(len(sizes)), sizes)
    lines = np.concatenate([np.arange(size) for size in sizes])
    return ms.Tensor(steps, ms.int64), ms.Tensor(lines, ms.int64)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Lines without what fills them up; raises RuntimeError where they should be sorted."""
    counts = _numbers([int(length) for length in lengths])
    steps = ops.swapaxes(input, 0, 1) if batch_first else input
    order = None
    if not enforce_sorted:
        places = np.argsort(-counts, kind="stable")
        counts, order = counts[places], ms.Tensor(places, ms.int64)
        steps = ops.gather(steps, order, 1)
        back = ms.Tensor(np.argsort(places, kind="stable"), ms.int64)
    elif np.any(np.diff(counts) > 0):
        raise RuntimeError("`lengths` array must be sorted in decreasing order")
    if counts.min() <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0")
    sizes = np.array([int((counts > step).sum()) for step in range(int(counts[0]))])
    packed, batch_sizes = steps[_places(sizes)], ms.Tensor(sizes, ms.int64)
    return PackedSequence(packed, batch_sizes, order, None if order is None else back)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Lines that are filled up behind, in the order before packing, and their lengths."""
    sizes = _numbers(sequence.batch_sizes)
    counts = np.array([int((sizes > line).sum()) for line in range(int(sizes[0]))])
    total = len(sizes) if total_length is None else total_length
    if total < len(sizes):
        raise ValueError(f"total_length is {total}, and the longest line has {len(sizes)} steps")
    # Each packed element has its place; what is filled up takes one behind them all.
    places = np.full((total, len(counts)), len(sequence.data))
    steps, lines = (_numbers(part) for part in _places(sizes))
    places[steps, lines] = np.arange(len(steps))
    if sequence.unsorted_indices is not None:
        back = _numbers(sequence.unsorted_indices)
        places, counts = places[:, back], counts[back]
    filling = ops.full((1, *sequence.data.shape[1:]), padding_value, dtype=sequence.data.dtype)
    padded = ops.cat((sequence.data, filling))[ms.Tensor(places, ms.int64)]
    return ops.swapaxes(padded, 0, 1) if batch_first else padded, ms.Tensor(counts, ms.int64)


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of several lengths, packed."""
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences of which something was packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return [line[:count] for line, count in zip(padded, _numbers(lengths).tolist())]


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Lines without what fills them up; torch turns its argument round in place, this does not."""
    lines = padded_sequences if batch_first else ops.swapaxes(padded_sequences, 0, 1)
    counts = np.maximum(_numbers(lengths), 0).tolist()
    if len(counts) != lines.shape[0]:
        raise ValueError(f"{lines.shape[0]} sequences have {len(counts)} lengths")
    return [line[:count] for line, count in zip(ops.unstack(lines, 0), counts, strict=True)]


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes one; None of None."""
    if permutation is None:
        return None
    return ms.Tensor(np.argsort(_numbers(permutation), kind="stable"), permutation.dtype)


def one_way(
    x: Any, weights: Sequence[Any], state: Any, step: Any, backwards: bool, goes_on: Sequence[Any]
) -> tuple[Any, Any]:
    """A layer in one direction: all hidden states, and the last state.

    weights: for the input and the state, their biases, and the projection's; None where absent.
    goes_on: for each step which lines have it, where some have not.
    """
    weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = weights
    parts, found = ops.unstack(layers.linear(x, weight_ih, bias_ih), 0), []
    order = range(len(parts))
    for number in reversed(order) if backwards else order:
        within, before = layers.linear(state[0], weight_hh, bias_hh), state
        state = step(parts[number], within, state)
        if weight_hr is not None:
            state = (layers.linear(state[0], weight_hr), *state[1:])
        found.append(state[0])
        if goes_on:
            pairs = zip(state, before)
            state = tuple(ops.where(goes_on[number], new, old) for new, old in pairs)
    return ops.stack(found[::-1] if backwards else found, 0), state


def all_layers(
    x: Any,
    weights: Sequence[Sequence[Sequence[Any]]],
    starts: Sequence[Any],
    step: Any,
    rate: float,
    goes_on: Sequence[Any] = (),
) -> tuple[Any, list[Any]]:
    """All layers over steps of lines: the last one's hidden states, and all last states.

    weights: by layer and direction; starts: the states, in the same order.  rate: of what is
    dropped between layers.
    """
    lasts: list[Any] = []
    for layer in weights:
        if lasts and rate:
            x = layers.dropout(x, rate)
        ways = []
        for backwards, own in enumerate(layer):
            way, last = one_way(x, own, starts[len(lasts)], step, backwards > 0, goes_on)
            ways.append(way)
            lasts.append(last)
        x = ops.cat(ways, -1) if len(ways) > 1 else ways[0]
    return x, [ops.stack(part, 0) for part in zip(*lasts)]


class AnyRNN(Module):
    """What the networks share: layers and directions, one step after the other."""

    gates, states, mode = 1, 1, "RNN_TANH"
    step: Any = staticmethod(rnn_step)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size, self.nonlinearity = bidirectional, proj_size, "tanh"
        width, rows = proj_size or hidden_size, self.gates * hidden_size
        for layer in range(num_layers):
            before = input_size if layer == 0 else width * (1 + bidirectional)
            for end in self._ends(layer):
                setattr(self, f"weight_ih{end}", parameter(rows, before, dtype=dtype))
                setattr(self, f"weight_hh{end}", parameter(rows, width, dtype=dtype))
                if bias:
                    setattr(self, f"bias_ih{end}", parameter(rows, dtype=dtype))
                    setattr(self, f"bias_hh{end}", parameter(rows, dtype=dtype))
                if proj_size:
                    last = parameter(proj_size, hidden_size, dtype=dtype)
                    setattr(self, f"weight_hr{end}", last)
        self.reset_parameters()

    def _ends(self, layer: int) -> list[str]:
        """How the names of a layer's parameters end, for each direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def reset_parameters(self) -> None:
        """Uniform by the size of the state."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for own in self.parameters():
            init_uniform(own, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: the layout of the memory is MindSpore's."""

    def _weights(self, end: str) -> list[Any]:
        """The weights of a layer in one direction, as `one_way` takes them."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [getattr(self, f"{name}{end}", None) for name in names]

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The hidden states of the last layer, and the last states of all layers.

        Of packed lines the hidden states are packed as well.
        """
        if isinstance(input, PackedSequence):
            padded, lengths = pad_packed_sequence(input)
            counts = _numbers(lengths)
            goes_on = [ms.Tensor((counts > step).reshape(-1, 1)) for step in range(padded.shape[0])]
            found, ends = self._all_layers(padded, hx, goes_on)
            if input.sorted_indices is not None:
                found = ops.gather(found, input.sorted_indices, 1)
            return input._replace(data=found[_places(_numbers(input.batch_sizes))]), ends
        batched = input.ndim == 3
        is_turned = batched and self.batch_first
        x = input if batched else input.expand_dims(1)
        x = ops.swapaxes(x, 0, 1) if is_turned else x
        if hx is not None and not batched:
            several = isinstance(hx, (tuple, list))
            hx = tuple(part.expand_dims(1) for part in hx) if several else hx.expand_dims(1)
        x, ends = self._all_layers(x, hx, ())
        x = ops.swapaxes(x, 0, 1) if is_turned else x
        if batched:
            return x, ends
        several = isinstance(ends, tuple)
        return x.squeeze(1), tuple(e.squeeze(1) for e in ends) if several else ends.squeeze(1)

    def _all_layers(self, x: Any, hx: Any, goes_on: Sequence[Any]) -> tuple[Any, Any]:
        """All layers over steps of lines: the last one's hidden states, and all last states."""
        count = self.num_layers * (1 + self.bidirectional)
        if hx is None:
            widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
            zeros = [ops.zeros((x.shape[1], width), dtype=x.dtype) for width in widths]
            starts = [tuple(zeros)] * count
        else:
            given = hx if isinstance(hx, (tuple, list)) else (hx,)
            starts = list(zip(*[ops.unstack(part, 0) for part in given]))
        weights = [[self._weights(end) for end in self._ends(n)] for n in range(self.num_layers)]
        run = step_with(type(self).step, self.nonlinearity)
        rate = self.dropout if self.training else 0.0
        x, ends = all_layers(x, weights, starts, run, rate, goes_on)
        return x, tuple(ends) if self.states > 1 else ends[0]


class LSTM(AnyRNN, nn.LSTM):  # type: ignore[misc]
    """torch.nn.LSTM."""

    gates, states, mode, step = 4, 2, "LSTM", staticmethod(lstm_step)


class GRU(AnyRNN, nn.GRU):  # type: ignore[misc]
    """torch.nn.GRU."""

    gates, mode, step = 3, "GRU", staticmethod(gru_step)


class RNN(AnyRNN, nn.RNN):  # type: ignore[misc]
    """torch.nn.RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(input_size, hidden_size, *settings, dtype=dtype)
        self.nonlinearity, self.mode = nonlinearity, f"RNN_{nonlinearity.upper()}"


_STEPS: dict[str, tuple[Any, str]] = {
    "lstm": (lstm_step, ""),
    "gru": (gru_step, ""),
    "rnn_tanh": (rnn_step, "tanh"),
    "rnn_relu": (rnn_step, "relu"),
}


def _step_and_states(kind: str, hx: Any) -> tuple[Any, tuple[Any, ...]]:
    step, nonlinearity = _STEPS[kind]
    states = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
    return step_with(step, nonlinearity), states


def recurrent(
    kind: str,
    input: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    rate: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """A recurrent network of given weights: all last hidden states, then the final states.

    params: for each layer and way the weights for the input and the state, then their biases, then
    the projection's.  rate: of what is dropped between layers.
    """
    step, states = _step_and_states(kind, hx)
    ways = 2 if bidirectional else 1
    each, none = len(params) // (num_layers * ways), [None, None]
    weights = []
    for first in range(0, len(params), each):
        own = list(params[first : first + each])
        biases = own[2:4] if has_biases else none
        weights.append([*own[:2], *biases, own[-1] if each % 2 else None])
    by_layer = [weights[first : first + ways] for first in range(0, len(weights), ways)]
    starts = list(zip(*[ops.unstack(part, 0) for part in states]))
    x = ops.swapaxes(input, 0, 1) if batch_first else input
    x, ends = all_layers(x, by_layer, starts, step, rate if train else 0.0)
    return (ops.swapaxes(x, 0, 1) if batch_first else x, *ends)


def recurrent_step(
    kind: str,
    input: Any,
    hx: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
) -> Any:
    """The next hidden state of a cell with given weights; of an LSTM the memory too."""
    step, state = _step_and_states(kind, hx)
    into = layers.linear(input, w_ih, b_ih)
    found = step(into, layers.linear(state[0], w_hh, b_hh), state)
    return found if kind == "lstm" else found[0]
