"""torch tensors to plain values and back."""

from __future__ import annotations

import numpy as np
import torch

from isograd.tensors import TensorValue


def to_value(tensor: torch.Tensor) -> TensorValue:
    """Copy a tensor out of torch; bfloat16 becomes float32 values with its own dtype name."""
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if plain.is_quantized:
        plain = plain.dequantize()
    plain = plain.cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if plain.dtype is torch.bfloat16 or name.startswith("float8"):
        return TensorValue(plain.to(torch.float32).numpy().copy(), name)
    return TensorValue(plain.contiguous().numpy().copy(), str(plain.numpy().dtype))


def from_value(value: TensorValue, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Make a torch tensor, of its own dtype or of the given one."""
    tensor = torch.from_numpy(np.ascontiguousarray(value.values).reshape(value.shape).copy())
    if value.dtype != str(value.values.dtype):
        tensor = tensor.to(getattr(torch, value.dtype))
    return tensor if dtype is None else tensor.to(dtype)
