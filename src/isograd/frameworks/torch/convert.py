"""torch tensors to plain values and back."""

from __future__ import annotations

import torch

from isograd.tensors import TensorValue, contiguous


def to_value(tensor: torch.Tensor, *, lent: bool = False) -> TensorValue:
    """Copy a tensor out of torch; bfloat16 becomes float32 values with its own dtype name.

    lent: the tensor's own memory will do, because nobody writes to it as long as the value lives.
    returns: the shape and dtype of the tensor.
    """
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if plain._is_zerotensor():
        plain = plain.clone()  # autograd's zeros (the gradient of `sgn`) have no memory to read
    if plain.is_quantized:
        plain = plain.dequantize()
    plain = plain.cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if plain.dtype is torch.bfloat16 or name.startswith("float8"):
        return TensorValue(plain.to(torch.float32).numpy().copy(), name)
    values = plain.contiguous().numpy()
    return TensorValue(values if lent else values.copy(), str(values.dtype))


def from_value(
    value: TensorValue, dtype: torch.dtype | None = None, *, lent: bool = False
) -> torch.Tensor:
    """Make a torch tensor, of its own dtype or of the given one.

    lent: the value's own memory will do, because nobody writes to the tensor.
    value: any shape and dtype.
    """
    values = contiguous(value.values)
    tensor = torch.from_numpy(values if lent and values.flags.writeable else values.copy())
    if value.dtype != str(value.values.dtype):
        tensor = tensor.to(getattr(torch, value.dtype))
    return tensor if dtype is None else tensor.to(dtype)
