"""Values written into tensors and Parameters, which is no part of what is differentiated."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore.common import api  # noqa: TID253


def write(target: Any, values: Any) -> Any:
    """Put values into a tensor or a Parameter; the tensor.

    By copy_: after set_data an optimizer that has stepped leaves a Parameter as it is.
    """
    made = values if isinstance(values, ms.Tensor) else ms.Tensor(values)
    with api._no_grad():
        if tuple(made.shape) == tuple(target.shape):
            target.copy_(made.astype(target.dtype))
        else:
            target.set_data(made.astype(target.dtype), slice_shape=True)
    return target


def set_data(owner: Any, values: Any) -> None:
    """`owner.data = values`, of a tensor or of anything else."""
    if isinstance(owner, ms.Tensor):
        write(owner, values)
    else:
        owner.data = values


def updated(held: Any, values: Any) -> Any:
    """What `held += …` leaves under the name: a Parameter is changed, anything else is new."""
    return write(held, values) if isinstance(held, ms.Parameter) else values
