"""A network of torch in double precision: float64, and complex128 for complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: What a dtype of lower precision is in the computation with float64.
_WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
_LOW_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


class Float64(TorchFunctionMode):
    """Turns casts to lower precision into casts to float64 and lifts what is still lower."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _LOW_CASTS:
            return args[0].double()
        if getattr(func, "__name__", "") == "cfloat":
            return args[0].to(torch.complex128)
        args = tuple(_lift_dtype(a) for a in args)
        result = func(*args, **{k: _lift_dtype(v) for k, v in (kwargs or {}).items()})
        if isinstance(result, torch.Tensor) and result.dtype in _WIDE:
            if not any(result is a for a in args) and getattr(func, "__name__", "") != "__get__":
                return widened(result)
        return result


def _lift_dtype(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in float64 or complex128; one of integers or truth values as it is."""
    return tensor.to(_WIDE.get(tensor.dtype, tensor.dtype))
