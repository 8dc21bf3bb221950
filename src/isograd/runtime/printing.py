"""Tensors where they are printed."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253


def _formatted(tensor: Any, how: str) -> str:
    """A tensor without axes as its number; any other one takes no format, as torch's."""
    return format(tensor.item(), how) if tensor.ndim == 0 else object.__format__(tensor, how)


def _taking_formats() -> bool:
    # MindSpore's Tensor has no __format__ of its own: f"{loss:.4f}" would raise.
    ms.Tensor.__format__ = _formatted
    return True


#: Tensors take formats from here on: `f"{loss:.4f}"`, `"{:.4f}".format(loss)`.
tensor_formats = _taking_formats()


def dtype_text(value: Any) -> str:
    """A dtype as torch writes it, 'torch.float32', where MindSpore writes 'Float32'.

    Another value, numpy's dtype for one, as `str` writes it.
    """
    return f"torch.{str(value).lower()}" if isinstance(value, ms.Type) else str(value)
