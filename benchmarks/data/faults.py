"""The planted differences: family, options of both sides, options of the port, and the truth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A difference that is planted in the port.

    causes: ids that name it rightly; transform: how the label of the first differing transform
    begins, in either pipeline; "" where the transforms of the family are not listed.
    """

    family: str
    option: str
    causes: tuple[str, ...]
    transform: str = ""
    both: str = ""


def _f(family: str, option: str, causes: str, transform: str = "", both: str = "") -> Fault:
    named = tuple(f"data.{cause}" for cause in causes.split())
    return Fault(family, option, named, transform, both)


FAULTS = (
    _f("imagenet_eval", "cpp", "resize", "Resize"),
    _f("imagenet_eval", "bicubic_b", "resize", "Resize"),
    _f("imagenet_eval", "nearest_b", "resize", "Resize"),
    _f("imagenet_eval", "exact_b", "resize", "Resize"),
    _f("imagenet_eval", "larger", "resize", "Resize"),
    _f("imagenet_eval", "smaller_crop", "crop", "CenterCrop"),
    _f("imagenet_eval", "no_crop", "transform_missing crop", "CenterCrop", "exact"),
    _f("imagenet_eval", "crop_first", "transform_order", "Resize"),
    _f("imagenet_eval", "bgr", "channel_order", "swap_channels"),
    _f("imagenet_eval", "gray", "grayscale transform_missing channel_order", "Grayscale"),
    _f("imagenet_eval", "flip", "flip transform_missing", "RandomHorizontalFlip"),
    _f("imagenet_eval", "mean_bgr", "normalize", "Normalize"),
    _f("imagenet_eval", "std_bgr", "normalize", "Normalize"),
    _f("imagenet_eval", "half", "normalize", "Normalize"),
    _f("imagenet_eval", "mean255", "normalize scale", "Normalize"),
    _f("imagenet_eval", "no_normalize", "transform_missing normalize", "Normalize"),
    _f("imagenet_eval", "no_rescale", "scale", "ToTensor"),
    _f("imagenet_eval", "double", "dtype", ""),
    _f("imagenet_eval", "hwc", "layout", ""),
    _f("imagenet_eval", "drop", "drop_last"),
    _f("imagenet_eval", "shuffle", "shuffle"),
    _f("imagenet_eval", "batch5", "batch_size"),
    _f("imagenet_train", "rarely", "random_parameters", "RandomHorizontalFlip"),
    _f("imagenet_train", "wrong_axis", "random_parameters", "RandomHorizontalFlip"),
    _f("imagenet_train", "scale_b", "random_parameters", "RandomResizedCrop"),
    _f("imagenet_train", "square_b", "random_parameters", "RandomResizedCrop"),
    _f("imagenet_train", "smaller", "random_parameters crop", "RandomResizedCrop"),
    _f("imagenet_train", "no_flip", "transform_missing", "RandomHorizontalFlip"),
    _f("imagenet_train", "weak", "random_parameters", "ColorJitter", "jitter"),
    _f("imagenet_train", "no_jitter", "transform_missing", "ColorJitter", "jitter"),
    _f("imagenet_train", "mean_bgr", "normalize", "Normalize"),
    _f("imagenet_train", "unshuffled", "shuffle"),
    _f("imagenet_train", "seeded", "shuffle_repeats"),
    _f("cifar", "narrow_b", "random_parameters", "RandomCrop"),
    _f("cifar", "fill", "random_parameters pad", "RandomCrop"),
    _f("cifar", "no_flip", "transform_missing", "RandomHorizontalFlip"),
    _f("cifar", "std", "normalize", "Normalize", "still"),
    _f("cifar", "offset", "label_offset", "", "still"),
    _f("cifar", "permuted", "label_map", "", "still"),
    _f("cifar", "one_hot", "one_hot", "", "still"),
    _f("segmentation", "smooth_mask", "resize", "Resize"),
    _f("segmentation", "ignored", "label_map", ""),
    _f("segmentation", "mirrored", "flip", ""),
    _f("segmentation", "shifted", "crop", ""),
    _f("segmentation", "bytes", "scale", "ToTensor"),
    _f("segmentation", "bgr", "channel_order", "swap_channels"),
    _f("segmentation", "hwc", "layout", ""),
    _f("detection", "xywh", "box_format"),
    _f("detection", "centre", "box_format"),
    _f("detection", "yx", "box_format column_order"),
    _f("detection", "shares", "box_format"),
    _f("detection", "mirrored", "box_format"),
    _f("detection", "offset", "label_offset"),
    _f("detection", "bgr", "channel_order"),
    _f("detection", "flipped", "flip"),
    _f("detection", "bytes", "scale"),
    _f("bert", "left", "padding"),
    _f("bert", "pad_id", "padding"),
    _f("bert", "bare", "special_tokens"),
    _f("bert", "cut_left", "truncation"),
    _f("bert", "length", "padding truncation special_tokens"),
    _f("bert", "inverted", "mask"),
    _f("bert", "all_ones", "mask"),
    _f("blocks", "shorter", "truncation"),
    _f("blocks", "later", "truncation target_shift"),
    _f("blocks", "much_later", "truncation"),
    _f("blocks", "twice", "truncation target_shift"),
    _f("blocks", "unshifted", "truncation target_shift"),
    _f("tabular", "mean", "normalize"),
    _f("tabular", "variance", "normalize"),
    _f("tabular", "order", "column_order"),
    _f("tabular", "clip", "clip"),
    _f("tabular", "double", "dtype"),
    _f("tabular", "offset", "label_offset"),
    _f("tabular", "one_hot", "one_hot"),
    _f("audio", "log10", "function"),
    _f("audio", "decibel", "function"),
    _f("audio", "linear", "function"),
    _f("audio", "turned", "layout"),
    _f("audio", "raw_scale", "scale"),
    _f("sharded", "other_rank", "shard samples"),
    _f("sharded", "quarter", "samples shard"),
    _f("sharded", "reversed", "order", "", "whole"),
    _f("sharded", "skip", "samples", "", "whole"),
    _f("sharded", "repeat", "repeat", "", "whole"),
    _f("sharded", "shuffle_b", "shuffle", "", "whole"),
    _f("sharded", "seeded", "shuffle_repeats", "", "whole__shuffle"),
    _f("sharded", "drop", "drop_last", "", "whole"),
)

#: Differences that are none: family and options of both sides.
EQUAL = (
    "imagenet_eval",
    "imagenet_eval__bicubic",
    "imagenet_eval__nearest",
    "imagenet_eval__exact",
    "imagenet_eval__plain",
    "imagenet_eval__drop",
    "imagenet_eval__bicubic__plain",
    "imagenet_eval__exact__nearest",
    "imagenet_eval__exact__bicubic__drop",
    "cifar__still",
    "segmentation",
    "detection",
    "bert",
    "bert__short",
    "blocks",
    "tabular",
    "audio",
    "audio__mel",
    "sharded",
    "sharded__whole",
)
#: Random pairs of equal distribution.
RANDOM = (
    "imagenet_train",
    "imagenet_train__scale",
    "imagenet_train__square",
    "imagenet_train__often",
    "imagenet_train__jitter",
    "imagenet_train__vertical",
    "imagenet_train__gray",
    "imagenet_train__fixed",
    "imagenet_train__scale__square",
    "imagenet_train__scale__often",
    "imagenet_train__scale__jitter",
    "imagenet_train__scale__vertical",
    "imagenet_train__square__often",
    "imagenet_train__square__gray",
    "imagenet_train__often__vertical",
    "imagenet_train__jitter__gray",
    "imagenet_train__fixed__jitter",
    "cifar",
    "cifar__narrow",
    "sharded__whole__shuffle",
)
