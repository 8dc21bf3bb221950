"""Declares the operators of torchvision's binary library, so that its wheel runs with CPU torch.

The networks measured here call none of them.
"""

import torch

_BOXES = "Tensor input, Tensor rois, float spatial_scale"
_GRID = "SymInt pooled_height, SymInt pooled_width"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_BACK = f"Tensor grad, Tensor rois, {{extra}}float spatial_scale, {_GRID}, {{more}}{_SHAPE}"
_DEFORM = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dil_h, SymInt dil_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_ARGUMENT, _MAPPING = "Tensor argmax, ", "Tensor channel_mapping, "
_SAMPLING = "int sampling_ratio, "
_OPERATORS = (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "_cuda_version() -> int",
    f"roi_align({_BOXES}, {_GRID}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward("
    + _BACK.format(extra="", more="")
    + ", int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({_BOXES}, {_GRID}) -> (Tensor, Tensor)",
    f"_roi_pool_backward({_BACK.format(extra=_ARGUMENT, more='')}) -> Tensor",
    f"ps_roi_align({_BOXES}, {_GRID}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_BACK.format(extra=_MAPPING, more=_SAMPLING)}) -> Tensor",
    f"ps_roi_pool({_BOXES}, {_GRID}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_BACK.format(extra=_MAPPING, more='')}) -> Tensor",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    f"{_DEFORM}) -> Tensor",
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, "
    f"Tensor bias, {_DEFORM}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
#: Operators live as long as the library that declared them.
LIBRARY = torch.library.Library("torchvision", "DEF")
for _operator in _OPERATORS:
    LIBRARY.define(_operator)
