"""Pooling: its windows, what is outside the picture, maximum or average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import (
    as_tuple,
    numbers,
    padded,
    same_pads,
    spatial_rank,
)
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite

MAX_POOLS = ("max_pool1d", "max_pool2d", "max_pool3d")
AVG_POOLS = ("avg_pool1d", "avg_pool2d", "avg_pool3d")


def windows_of(arguments: Any, function: str) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride and padding as tuples."""
    rank = spatial_rank(function)
    kernel = as_tuple(arguments["kernel_size"], rank)
    stride = arguments.get("stride")
    empty = stride is None or stride in ((), [])
    padding = as_tuple(arguments.get("padding", 0), rank)
    return kernel, kernel if empty else as_tuple(stride, rank), padding


def _plain(argument: str) -> Any:
    def value(site: FunctionSite, context: Context) -> Any:
        kernel, stride, padding = windows_of(site.arguments, site.place.function)
        own = {"kernel_size": kernel, "stride": stride, "padding": padding}[argument]
        return own[0] if len(set(own)) == 1 else own

    return value


def _averaged(x: Any, kernel: Any, stride: Any, pads: Any, counted: bool) -> Any:
    """Average pooling with padding of its own on every side."""
    import torch
    from torch.nn import functional

    rank = len(kernel)
    pool = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}[rank]
    means = pool(padded(x, pads), kernel, stride)
    if counted:
        return means
    return means / pool(padded(torch.ones_like(x), pads), kernel, stride)


def _propose_max_padding(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    kernel, _, own = windows_of(site.arguments, site.place.function)
    yield {"padding": "same"}
    for number in range(max(kernel) // 2 + 1):
        if (number,) * len(own) != own:
            yield {"padding": number}
    if any(own):
        yield {"padding": "zeros"}
        yield {"padding": "at the end only"}
        yield {"padding": "at the start only"}


def _pads(call: Call, padding: Any) -> list[tuple[int, int]]:
    kernel, stride, own = windows_of(call.arguments, call.function)
    if padding == "same":
        sizes = tuple(call["input"].shape[-len(kernel) :])
        return same_pads(sizes, kernel, stride, (1,) * len(kernel))
    if padding == "at the start only":
        return [(2 * p, 0) for p in own]
    if padding == "at the end only":
        return [(0, 2 * p) for p in own]
    return [(p, p) for p in (own if padding == "zeros" else as_tuple(padding, len(kernel)))]


def _other_max_padding(call: Call, values: Values) -> Any:
    fill = 0.0 if values["padding"] == "zeros" else -math.inf
    x = padded(call["input"], _pads(call, values["padding"]), value=fill)
    return call.run(input=x, padding=0)


def _propose_avg_padding(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    kernel, _, own = windows_of(site.arguments, site.place.function)
    for padding in ("same", *range(max(kernel) // 2 + 1)):
        if (padding,) * len(own) == own:
            continue
        for counted in (True, False) if padding else (True,):
            yield {"padding": padding, "counted": counted}


def _other_avg_padding(call: Call, values: Values) -> Any:
    kernel, stride, _ = windows_of(call.arguments, call.function)
    pads = _pads(call, values["padding"])
    return _averaged(call["input"], kernel, stride, pads, values["counted"])


def _propose_counted(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("count_include_pad", True)
    padded_anyhow = site.arguments.get("ceil_mode")
    if numbers(site.arguments.get("kernel_size")) and (
        padded_anyhow or any(windows_of(site.arguments, site.place.function)[2])
    ):
        yield {"count_include_pad": not own}


def _propose_ceil(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"ceil_mode": not site.arguments.get("ceil_mode", False)}


def _propose_stride(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    kernel, own, _ = windows_of(site.arguments, site.place.function)
    for number in sorted({1, 2, 3, *kernel}):
        if (number,) * len(own) != own:
            yield {"stride": number}


def _propose_kernel(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    own, stride, padding = windows_of(site.arguments, site.place.function)
    for number in (2, 3, 4, 5, 7):
        if (number,) * len(own) != own:
            kept = tuple(max(0, p + (number - k) // 2) for p, k in zip(padding, own, strict=True))
            for other in dict.fromkeys((padding, kept)):
                yield {"kernel_size": number, "stride": stride, "padding": other}
            if own == stride:
                yield {"kernel_size": number, "stride": (number,) * len(own), "padding": padding}


IMAGE = ((2, 4, 10, 10),)
MAX_LAYER = "nn.MaxPool2d(3, 2, 1)"
_AVG = "nn.AvgPool2d(3, 2, 1)"


def port_pool(kind: str, words: str) -> str:
    return f"nn.{kind}Pool2d(kernel_size=3, stride=2, {words})"


def pool_example(reference: str, port: str, value: Any = None, inputs: Any = IMAGE) -> Example:
    return Example(
        "self.pool(x)", "self.pool(x)", inputs, {"pool": (reference, port)}, port_value=value
    )


HYPOTHESES = (
    FunctionHypothesis(
        "max_pool_padding",
        "max_pool.padding",
        MAX_POOLS,
        _propose_max_padding,
        _other_max_padding,
        "{function} with padding {port} instead of {reference}",
        "padding",
        rank=3,
        reference_value=_plain("padding"),
        examples=(
            pool_example(MAX_LAYER, port_pool("Max", "pad_mode='same'"), "same"),
            pool_example(MAX_LAYER, port_pool("Max", "pad_mode='valid'"), 0, ((2, 4, 9, 9),)),
            Example(
                "F.max_pool2d(x, 3, stride=2, padding=1)",
                "self.pool(ops.pad(x, (1, 1, 1, 1)))",
                IMAGE,
                {"pool": ("nn.Identity()", port_pool("Max", "pad_mode='valid'"))},
                port_value="zeros",
            ),
        ),
    ),
    FunctionHypothesis(
        "avg_pool_padding",
        "avg_pool.padding",
        AVG_POOLS,
        _propose_avg_padding,
        _other_avg_padding,
        "{function} with padding {port} instead of {reference}",
        "padding",
        rank=3,
        reference_value=_plain("padding"),
        examples=(pool_example(_AVG, port_pool("Avg", "pad_mode='same'"), "same"),),
    ),
    FunctionHypothesis(
        "avg_pool_count_include_pad",
        "avg_pool.count_include_pad",
        AVG_POOLS,
        _propose_counted,
        lambda call, values: call.run(**values),
        "{function} with count_include_pad={port} instead of {reference}",
        "count_include_pad",
        rank=2,
        examples=(
            pool_example(
                _AVG, port_pool("Avg", "pad_mode='pad', padding=1, count_include_pad=False"), False
            ),
        ),
    ),
    FunctionHypothesis(
        "pool_ceil_mode",
        "pool.ceil_mode",
        (*MAX_POOLS, *AVG_POOLS),
        _propose_ceil,
        lambda call, values: call.run(**values),
        "{function} with ceil_mode={port} instead of {reference}",
        "ceil_mode",
        rank=2,
        examples=(
            pool_example(
                "nn.MaxPool2d(3, 2)",
                port_pool("Max", "pad_mode='pad', padding=0, ceil_mode=True"),
                True,
            ),
        ),
    ),
    FunctionHypothesis(
        "pool_stride",
        "pool.stride",
        (*MAX_POOLS, *AVG_POOLS),
        _propose_stride,
        lambda call, values: call.run(**values),
        "{function} with stride {port} instead of {reference}",
        "stride",
        rank=3,
        reference_value=_plain("stride"),
        examples=(
            pool_example("nn.MaxPool2d(2)", "nn.MaxPool2d(2)", 1),
            pool_example("nn.AvgPool2d(2)", "nn.AvgPool2d(2)", 1),
        ),
    ),
    FunctionHypothesis(
        "pool_kernel_size",
        "pool.kernel_size",
        (*MAX_POOLS, *AVG_POOLS),
        _propose_kernel,
        lambda call, values: call.run(**values),
        "{function} over windows of {port} instead of {reference}",
        rank=4,
        reference_value=_plain("kernel_size"),
        port_value=lambda values: values["kernel_size"],
        examples=(pool_example("nn.MaxPool2d(2, 2)", "nn.MaxPool2d(kernel_size=3, stride=2)", 3),),
    ),
)
