"""torch.nn.init by torch's rules: each sets the Parameter's data and returns it."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.writing import write, write_eagerly


def _set(tensor: Any, values: Any) -> Any:
    """Into a tensor or a Parameter."""
    return write_eagerly(tensor, values)


def init_constant(tensor: Any, val: float) -> Any:
    """All elements one number."""
    return _set(tensor, ops.full(tuple(tensor.shape), val, dtype=ms.float32))


def init_zeros(tensor: Any) -> Any:
    """All elements 0."""
    return init_constant(tensor, 0.0)


def init_ones(tensor: Any) -> Any:
    """All elements 1."""
    return init_constant(tensor, 1.0)


# Generators are taken and not asked: the numbers that are drawn are MindSpore's in any case.


def init_normal(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers."""
    return _set(tensor, ops.randn(*tensor.shape) * std + mean)


def init_uniform(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers between a and b."""
    return _set(tensor, ops.rand(*tensor.shape) * (b - a) + a)


def init_trunc_normal(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Normal numbers between a and b (values, not deviations), by the inverse distribution."""
    low, high = (0.5 * (1 + math.erf((edge - mean) / std / math.sqrt(2))) for edge in (a, b))
    places = ops.rand(*tensor.shape) * (high - low) + low
    inside = ops.clamp(2 * places - 1, -1 + 1e-7, 1 - 1e-7)
    values = ops.erfinv(inside) * (std * math.sqrt(2)) + mean
    return _set(tensor, ops.clamp(values, a, b))


def fans(tensor: Any) -> tuple[int, int]:
    """The numbers of inputs and outputs of each unit."""
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What an activation takes from the deviation, turned round."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    known = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    return known.get(nonlinearity, 1 if nonlinearity != "tanh" else 5 / 3)


def init_xavier_uniform(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's rule, uniform."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return init_uniform(tensor, -bound, bound)


def init_xavier_normal(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's rule, normal."""
    return init_normal(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))))


def _deviation(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    count = fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(count)


def init_kaiming_uniform(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """He's rule, uniform."""
    bound = math.sqrt(3) * _deviation(tensor, a, mode, nonlinearity)
    return init_uniform(tensor, -bound, bound)


def init_kaiming_normal(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """He's rule, normal."""
    return init_normal(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity))


def init_eye(tensor: Any) -> Any:
    """The unit matrix."""
    return _set(tensor, ms.Tensor(np.eye(tensor.shape[0], tensor.shape[1], dtype=np.float32)))


def init_dirac(tensor: Any, groups: int = 1) -> Any:
    """Kernels that pass their channel on."""
    values = np.zeros(tensor.shape, np.float32)
    own = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(own, tensor.shape[1])):
            place = (group * own + channel, channel, *centre)
            values[place] = 1
    return _set(tensor, ms.Tensor(values))


def init_orthogonal(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Rows (or columns) of length gain, at right angles, by numpy."""
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    drawn = ops.randn(max(rows, columns), min(rows, columns)).asnumpy()
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diag(r))
    values = gain * (q if rows >= columns else q.T)
    return _set(tensor, ms.Tensor(values.reshape(tensor.shape).astype(np.float32)))


def init_sparse(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Normal numbers with a share of zeros in each column."""
    rows, columns = tensor.shape
    order = np.argsort(ops.rand(rows, columns).asnumpy(), 0)
    kept = (order >= math.ceil(sparsity * rows)).astype(np.float32)
    return _set(tensor, ops.randn(rows, columns) * std * ms.Tensor(kept))


def parameters_to_vector(parameters: Any) -> Any:
    """All elements one after the other."""
    return ops.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Each Parameter's elements from a vector, one after the other."""
    start = 0
    for parameter in parameters:
        size = math.prod(parameter.shape)
        write(parameter, vec[start : start + size].reshape(parameter.shape))
        start += size


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Sequences of different length side by side, filled up behind or in front."""
    longest = max(sequence.shape[0] for sequence in sequences)
    rows = []
    for sequence in sequences:
        missing = (longest - sequence.shape[0], *sequence.shape[1:])
        if missing[0]:
            filled = ops.full(missing, padding_value, dtype=sequence.dtype)
            is_behind = padding_side == "right"
            rows.append(ops.cat((sequence, filled) if is_behind else (filled, sequence)))
        else:
            rows.append(sequence)
    return ops.stack(rows, 0 if batch_first else 1)
