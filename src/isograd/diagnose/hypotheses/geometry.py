"""Windows of convolutions and pooling: their sizes, and padding as other frameworks put it."""

from __future__ import annotations

from typing import Any

from isograd.diagnose.hypothesis import Context
from isograd.frameworks.base import FunctionSite, Operand


def spatial_rank(function: str) -> int:
    """The number of spatial axes, from names such as conv2d."""
    return next((int(c) for c in function if c in "123"), 2)


def as_tuple(value: Any, rank: int) -> tuple[int, ...]:
    """An int for every axis, or a sequence of one or of all, as a tuple."""
    if isinstance(value, int):
        return (value,) * rank
    found = tuple(int(v) for v in value)
    return found * rank if len(found) == 1 else found


def numbers(value: Any) -> bool:
    """Whether an argument is a plain int or a tuple of such."""
    if isinstance(value, tuple):
        return all(isinstance(v, int) for v in value)
    return isinstance(value, int) and not isinstance(value, bool)


def same_pads(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> list[tuple[int, int]]:
    """Padding "same" as TensorFlow and MindSpore put it: as little as needed, more at the end."""
    result = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        total = max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
        result.append((total // 2, total - total // 2))
    return result


def padded(x: Any, pads: list[tuple[int, int]], mode: str = "constant", value: float = 0.0) -> Any:
    """The tensor with padding of its last axes, given in the order of the axes."""
    from torch.nn import functional

    flat = [n for before, after in reversed(pads) for n in (before, after)]
    if not any(flat):
        return x
    return (
        functional.pad(x, flat, mode, value)
        if mode == "constant"
        else functional.pad(x, flat, mode)
    )


def rank_of(operand: Any) -> int:
    """The number of axes of a tensor argument; 0 where there is none."""
    return len(operand.shape) if isinstance(operand, Operand) else 0


def is_closed(site: FunctionSite, context: Context) -> bool:
    """Whether a module's call is seen as a whole: its result is given, nothing inside runs."""
    inside = f"{site.place.module}."
    return not any(
        other.place.module.startswith(inside)
        or (other.place.module == site.place.module and other is not site)
        for other in context.sites
    )
