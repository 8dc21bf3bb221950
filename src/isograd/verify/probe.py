"""The weights that a verification uses: the reference's own, but none that hide a fault.

A fresh network is full of constants: a BatchNorm's ones and zeros, zero biases, a position table
or a residual scale of zeros.  They make a swapped gamma and beta, a missing bias or a whole
branch invisible.  Constant parameters and fresh running statistics are therefore moved; weights
that were trained are left as they are.
"""

from __future__ import annotations

import numpy as np

from isograd.frameworks.base import ParameterInfo, Tensors
from isograd.tensors import TensorValue

_STATISTICS = {"running_mean": 0.0, "running_var": 1.0}


def probe_state(
    state: Tensors, parameters: tuple[ParameterInfo, ...], seed: int
) -> tuple[Tensors, tuple[str, ...]]:
    """The state with its constant tensors moved, and the names of those.

    state: by name, any shapes and dtypes.
    returns: the same shapes and dtypes.
    """
    result = dict(state)
    moved: list[str] = []
    for number, info in enumerate(parameters):
        value = state.get(info.name)
        if value is None or not value.is_floating or info.tied_to or value.values.size == 0:
            continue
        is_statistic = info.attribute in _STATISTICS
        if not (info.trainable or is_statistic) or np.ptp(value.values) != 0:
            continue
        constant = float(value.values.item(0))
        generator = np.random.default_rng((seed, number))
        noise = generator.standard_normal(value.shape)
        if is_statistic and info.attribute == "running_var":
            fresh = constant * generator.uniform(0.5, 1.5, value.shape)
        elif constant == 0.0:
            fan_in = float(np.prod(value.shape[1:])) if len(value.shape) > 1 else 4.0
            fresh = noise * 0.5 / max(1.0, fan_in) ** 0.5 * 0.4
        else:
            fresh = constant * (1.0 + 0.1 * noise)
        stored = fresh.astype(value.values.dtype)
        if value.dtype == "bfloat16":
            stored = (stored.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        result[info.name] = TensorValue(stored, value.dtype)
        moved.append(info.name)
    return result, tuple(moved)
