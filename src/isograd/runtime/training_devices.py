"""Devices by torch's words; where tensors lie is MindSpore's affair."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253


class device:  # noqa: N801  # torch's name
    """The name of a device; where tensors lie is chosen by mindspore.set_device."""

    def __init__(self, type: Any = None, index: int | None = None) -> None:
        kind, _, number = str("cpu" if type is None else type).partition(":")
        self.type = kind
        self.index = int(number) if number else index

    def __eq__(self, other: object) -> bool:
        # MindSpore's tensors say "CPU" and "Ascend:0".
        return str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    __repr__ = __str__


def device_type(device: Any) -> Any:
    """`device.type`, also of what a tensor of MindSpore's calls its device, "CPU" or "Ascend:0"."""
    return device.partition(":")[0].lower() if isinstance(device, str) else device.type


def device_index(device: Any) -> Any:
    """`device.index`, also of what a tensor of MindSpore's calls its device."""
    if not isinstance(device, str):
        return device.index
    number = device.partition(":")[2]
    return int(number) if number else None


def device_count() -> int:
    """How many devices MindSpore can compute on; none where it computes on the CPU."""
    return int(ms.hal.device_count()) if has_accelerator() else 0


def get_default_device() -> device:
    """Where MindSpore makes tensors."""
    return device(ms.get_context("device_target").lower())


def has_accelerator() -> bool:
    """Whether MindSpore computes on another device than the CPU."""
    return bool(ms.get_context("device_target") != "CPU")
