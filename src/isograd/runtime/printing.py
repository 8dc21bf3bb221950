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


#: torch's names of MindSpore's classes and of the runtime's, where they differ.
TORCH_NAMES = {
    "Cell": "Module", "SequentialCell": "Sequential", "CellList": "ModuleList",
    "CellDict": "ModuleDict", "DictOfCells": "ModuleDict", "Dense": "Linear", "BiDense": "Bilinear",
    "PaddedEmbedding": "Embedding", "Conv1dTranspose": "ConvTranspose1d",
    "Conv2dTranspose": "ConvTranspose2d", "Conv3dTranspose": "ConvTranspose3d",
    "HSwish": "Hardswish", "HSigmoid": "Hardsigmoid", "SeLU": "SELU", "HShrink": "Hardshrink",
    "SoftShrink": "Softshrink", "MultilabelMarginLoss": "MultiLabelMarginLoss",
}  # fmt: skip


def class_name(value: Any) -> str:
    """The name that torch has for the class of a value; a program's own class has its own."""
    kind = type(value)
    if not kind.__module__.startswith("mindspore.") and kind.__module__ != __name__:
        return kind.__name__
    return TORCH_NAMES.get(kind.__name__, kind.__name__.removeprefix("Graph"))
