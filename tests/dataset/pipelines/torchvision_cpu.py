"""torchvision beside a torch that has no CUDA.

The index has torchvision only as built for CUDA; beside a torch for the CPU its library is not
loaded, and its import ends at the first operator that nothing has declared.  Declared here are the
operators that `torchvision/_meta_registrations.py` of 0.28 looks for; the transforms use none.
"""

from __future__ import annotations

import torch

_BOXES = "Tensor dets, Tensor scores, float iou_threshold"
_POOL = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_GRAD = "Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_MAPPED = _GRAD.replace("Tensor rois,", "Tensor rois, Tensor channel_mapping,")
_SIZE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_OPERATORS = (
    "_cuda_version() -> int",
    f"nms({_BOXES}) -> Tensor",
    f"qnms({_BOXES}) -> Tensor",
    f"roi_align({_POOL}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward({_GRAD}, {_SIZE}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({_POOL}) -> (Tensor, Tensor)",
    f"_roi_pool_backward({_GRAD.replace('rois,', 'rois, Tensor argmax,')}, {_SIZE}) -> Tensor",
    f"ps_roi_align({_POOL}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_MAPPED}, int sampling_ratio, {_SIZE}) -> Tensor",
    f"ps_roi_pool({_POOL}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_MAPPED}, {_SIZE}) -> Tensor",
    f"deform_conv2d({_CONVOLUTION}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_CONVOLUTION}) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def _import() -> None:
    import torchvision  # noqa: F401 - whether it can be


try:
    _import()
except RuntimeError:
    _LIBRARY = torch.library.Library("torchvision", "DEF")
    for _operator in _OPERATORS:
        _LIBRARY.define(_operator)
    _import()
