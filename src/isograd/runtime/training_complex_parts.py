"""Complex parameters learn by their real and imaginary parts, as torch's optimizers do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def is_complex(tensor: Any) -> bool:
    """Whether a tensor has two parts."""
    return tensor.dtype in (ms.complex64, ms.complex128)


def parts_of(tensor: Any) -> Any:
    """The parts of a complex tensor of any shape, in a last axis of two."""
    return ops.stack((ops.real(tensor), ops.imag(tensor)), -1)


def joined(parts: Any) -> Any:
    """The complex tensor of two parts in the last axis.

    MindSpore 2.10's compiler takes a slice of a Parameter from before it was assigned to.
    """
    real, imaginary = ops.unstack(parts, -1)
    return ops.Complex()(real, imaginary)


def changed_by(rule: Callable[[Any, Any], Any], parameter: Any, gradient: Any) -> Any:
    """A parameter's next value, in its dtype, by a rule that takes no complex tensors."""
    if is_complex(parameter):
        return joined(rule(parts_of(parameter), parts_of(gradient)))
    return rule(parameter, gradient).astype(parameter.dtype)


def state_in_parts(state: dict[str, Any]) -> dict[str, Any]:
    """A parameter's state as its rule reads it: what is complex in a checkpoint, by parts."""
    return {
        name: parts_of(value) if isinstance(value, ms.Tensor) and is_complex(value) else value
        for name, value in state.items()
    }


def state_joined(parameter: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A parameter's state as torch keeps it: complex where the parameter is, and of its shape."""
    if not is_complex(parameter):
        return dict(state)
    shape = (*parameter.shape, 2)
    return {
        name: joined(value) if isinstance(value, ms.Tensor) and value.shape == shape else value
        for name, value in state.items()
    }
