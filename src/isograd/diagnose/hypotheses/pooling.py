"""Pooling: its windows, what is outside the picture, maximum or average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import (
    as_tuple,
    numbers,
    padded,
    rank_of,
    same_pads,
    spatial_rank,
)
from isograd.diagnose.hypothesis import Call, Context, Example, Hypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

MAX_POOLS = ("max_pool1d", "max_pool2d", "max_pool3d")
AVG_POOLS = ("avg_pool1d", "avg_pool2d", "avg_pool3d")
_ADAPTIVE = tuple(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3))


def _windows(arguments: Any, function: str) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride and padding as tuples."""
    rank = spatial_rank(function)
    kernel = as_tuple(arguments["kernel_size"], rank)
    stride = arguments.get("stride")
    empty = stride is None or stride in ((), [])
    padding = as_tuple(arguments.get("padding", 0), rank)
    return kernel, kernel if empty else as_tuple(stride, rank), padding


def _plain(argument: str) -> Any:
    def value(site: FunctionSite, context: Context) -> Any:
        kernel, stride, padding = _windows(site.arguments, site.place.function)
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
    kernel, _, own = _windows(site.arguments, site.place.function)
    yield {"padding": "same"}
    for number in range(max(kernel) // 2 + 1):
        if (number,) * len(own) != own:
            yield {"padding": number}
    if any(own):
        yield {"padding": "zeros"}
        yield {"padding": "at the end only"}
        yield {"padding": "at the start only"}


def _pads(call: Call, padding: Any) -> list[tuple[int, int]]:
    kernel, stride, own = _windows(call.arguments, call.function)
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
    kernel, _, own = _windows(site.arguments, site.place.function)
    for padding in ("same", *range(max(kernel) // 2 + 1)):
        if (padding,) * len(own) == own:
            continue
        for counted in (True, False) if padding else (True,):
            yield {"padding": padding, "counted": counted}


def _other_avg_padding(call: Call, values: Values) -> Any:
    kernel, stride, _ = _windows(call.arguments, call.function)
    pads = _pads(call, values["padding"])
    return _averaged(call["input"], kernel, stride, pads, values["counted"])


def _propose_counted(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("count_include_pad", True)
    padded_anyhow = site.arguments.get("ceil_mode")
    if numbers(site.arguments.get("kernel_size")) and (
        padded_anyhow or any(_windows(site.arguments, site.place.function)[2])
    ):
        yield {"count_include_pad": not own}


def _propose_ceil(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"ceil_mode": not site.arguments.get("ceil_mode", False)}


def _propose_stride(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    kernel, own, _ = _windows(site.arguments, site.place.function)
    for number in sorted({1, 2, 3, *kernel}):
        if (number,) * len(own) != own:
            yield {"stride": number}


def _propose_kernel(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not numbers(site.arguments.get("kernel_size")):
        return
    own, stride, padding = _windows(site.arguments, site.place.function)
    for number in (2, 3, 4, 5, 7):
        if (number,) * len(own) != own:
            kept = tuple(max(0, p + (number - k) // 2) for p, k in zip(padding, own, strict=True))
            for other in dict.fromkeys((padding, kept)):
                yield {"kernel_size": number, "stride": stride, "padding": other}
            if own == stride:
                yield {"kernel_size": number, "stride": (number,) * len(own), "padding": padding}


def _propose_kind(site: FunctionSite, context: Context) -> Iterator[Values]:
    function = site.place.function
    if function in MAX_POOLS:
        yield {"kind": "average", "counted": True}
        if site.arguments.get("padding"):
            yield {"kind": "average", "counted": False}
    elif function in AVG_POOLS or function.startswith("adaptive_avg"):
        yield {"kind": "maximum"}
    elif function.startswith("adaptive_max"):
        yield {"kind": "average"}


def _other_kind(call: Call, values: Values) -> Any:
    from torch.nn import functional

    function = call.function
    if function.startswith("adaptive"):
        swapped = (
            function.replace("avg", "max") if "avg" in function else function.replace("max", "avg")
        )
        return getattr(functional, swapped)(call["input"], call["output_size"])
    kernel, stride, padding = _windows(call.arguments, function)
    ceil = bool(call.arguments.get("ceil_mode", False))
    if values["kind"] == "maximum":
        pool = getattr(functional, function.replace("avg", "max"))
        return pool(call["input"], kernel, stride, padding, ceil_mode=ceil)
    pool = getattr(functional, function.replace("max", "avg"))
    return pool(call["input"], kernel, stride, padding, ceil, values["counted"])


def _kind_of(site: FunctionSite, context: Context) -> str:
    return "maximum" if "max" in site.place.function else "average"


def _propose_global(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Means, sums and maxima over places or tokens that are no part of a normalisation."""
    if context.is_loss or rank_of(site.arguments.get("input")) < 3:
        return
    if site.arguments.get("dim") is None or "dtype" in site.arguments:
        return
    if any(
        c.place.function in ("sub", "rsqrt", "sqrt", "add", "rsub") for c in context.consumers(site)
    ):
        return
    for kind in ("average", "maximum", "sum"):
        if kind != _global_kind(site, context):
            yield {"kind": kind}


def _global_kind(site: FunctionSite, context: Context) -> str:
    return {"mean": "average", "amax": "maximum", "sum": "sum"}[site.place.function]


def _other_global(call: Call, values: Values) -> Any:
    keep = bool(call.arguments.get("keepdim", False))
    x, dim = call["input"], call["dim"]
    if values["kind"] == "maximum":
        return x.amax(dim, keepdim=keep)
    return x.mean(dim, keepdim=keep) if values["kind"] == "average" else x.sum(dim, keepdim=keep)


def _propose_uneven(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand, wanted = site.arguments.get("input"), site.arguments.get("output_size")
    if not isinstance(operand, Operand):
        return
    rank = spatial_rank(site.place.function)
    sizes = operand.shape[-rank:]
    outputs = wanted if isinstance(wanted, tuple) else (wanted,) * rank
    if all(isinstance(o, int) for o in outputs) and any(
        s % int(o or 1) for s, o in zip(sizes, outputs, strict=True)
    ):
        yield {"windows": "of one size"}


def _even_windows(call: Call, values: Values) -> Any:
    from torch.nn import functional

    rank = spatial_rank(call.function)
    sizes = tuple(call["input"].shape[-rank:])
    outputs = as_tuple(call["output_size"], rank)
    stride = tuple(s // o for s, o in zip(sizes, outputs, strict=True))
    kernel = tuple(s - (o - 1) * t for s, o, t in zip(sizes, outputs, stride, strict=True))
    return getattr(functional, call.function.removeprefix("adaptive_"))(
        call["input"], kernel, stride
    )


_IMAGE = ((2, 4, 10, 10),)
_MAX = "nn.MaxPool2d(3, 2, 1)"
_AVG = "nn.AvgPool2d(3, 2, 1)"


def _port(kind: str, words: str) -> str:
    return f"nn.{kind}Pool2d(kernel_size=3, stride=2, {words})"


def _example(reference: str, port: str, value: Any = None, inputs: Any = _IMAGE) -> Example:
    return Example(
        "self.pool(x)", "self.pool(x)", inputs, {"pool": (reference, port)}, port_value=value
    )


HYPOTHESES = (
    Hypothesis(
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
            _example(_MAX, _port("Max", "pad_mode='same'"), "same"),
            _example(_MAX, _port("Max", "pad_mode='valid'"), 0, ((2, 4, 9, 9),)),
            Example(
                "F.max_pool2d(x, 3, stride=2, padding=1)",
                "self.pool(ops.pad(x, (1, 1, 1, 1)))",
                _IMAGE,
                {"pool": ("nn.Identity()", _port("Max", "pad_mode='valid'"))},
                port_value="zeros",
            ),
        ),
    ),
    Hypothesis(
        "avg_pool_padding",
        "avg_pool.padding",
        AVG_POOLS,
        _propose_avg_padding,
        _other_avg_padding,
        "{function} with padding {port} instead of {reference}",
        "padding",
        rank=3,
        reference_value=_plain("padding"),
        examples=(_example(_AVG, _port("Avg", "pad_mode='same'"), "same"),),
    ),
    Hypothesis(
        "avg_pool_count_include_pad",
        "avg_pool.count_include_pad",
        AVG_POOLS,
        _propose_counted,
        lambda call, values: call.run(**values),
        "{function} with count_include_pad={port} instead of {reference}",
        "count_include_pad",
        rank=2,
        examples=(
            _example(
                _AVG, _port("Avg", "pad_mode='pad', padding=1, count_include_pad=False"), False
            ),
        ),
    ),
    Hypothesis(
        "pool_ceil_mode",
        "pool.ceil_mode",
        (*MAX_POOLS, *AVG_POOLS),
        _propose_ceil,
        lambda call, values: call.run(**values),
        "{function} with ceil_mode={port} instead of {reference}",
        "ceil_mode",
        rank=2,
        examples=(
            _example(
                "nn.MaxPool2d(3, 2)",
                _port("Max", "pad_mode='pad', padding=0, ceil_mode=True"),
                True,
            ),
        ),
    ),
    Hypothesis(
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
            _example("nn.MaxPool2d(2)", "nn.MaxPool2d(2)", 1),
            _example("nn.AvgPool2d(2)", "nn.AvgPool2d(2)", 1),
        ),
    ),
    Hypothesis(
        "pool_kernel_size",
        "pool.kernel_size",
        (*MAX_POOLS, *AVG_POOLS),
        _propose_kernel,
        lambda call, values: call.run(**values),
        "{function} over windows of {port} instead of {reference}",
        rank=4,
        reference_value=_plain("kernel_size"),
        port_value=lambda values: values["kernel_size"],
        examples=(_example("nn.MaxPool2d(2, 2)", "nn.MaxPool2d(kernel_size=3, stride=2)", 3),),
    ),
    Hypothesis(
        "pool_kind",
        "pool.kind",
        (*MAX_POOLS, *AVG_POOLS, *_ADAPTIVE),
        _propose_kind,
        _other_kind,
        "pooling by {port} instead of {reference}",
        rank=3,
        reference_value=_kind_of,
        port_value=lambda values: values["kind"],
        examples=(
            _example(_MAX, _port("Avg", "pad_mode='pad', padding=1"), "average"),
            Example(
                "F.adaptive_avg_pool2d(x, 1)",
                "x.max(axis=3, keepdims=True).max(axis=2, keepdims=True)",
                _IMAGE,
                port_value="maximum",
            ),
        ),
    ),
    Hypothesis(
        "pool_kind_global",
        "pool.kind",
        ("mean", "sum", "amax"),
        _propose_global,
        _other_global,
        "pooling by {port} instead of {reference}",
        rank=3,
        reference_value=_global_kind,
        port_value=lambda values: values["kind"],
        examples=(
            Example("x.mean((2, 3))", "ops.amax(x, (2, 3))", _IMAGE, port_value="maximum"),
            Example("x.mean(dim=1)", "x.sum(axis=1)", port_value="sum"),
        ),
    ),
    Hypothesis(
        "adaptive_pool_windows",
        "adaptive_pool.windows",
        _ADAPTIVE,
        _propose_uneven,
        _even_windows,
        "{function} with windows of one size instead of the adaptive ones",
        rank=3,
        reference_value=lambda site, context: "adaptive",
        port_value=lambda values: values["windows"],
        examples=(
            Example(
                "F.adaptive_avg_pool2d(x, 4)",
                "self.pool(x)",
                _IMAGE,
                {"pool": ("nn.Identity()", "nn.AvgPool2d(kernel_size=4, stride=2)")},
            ),
        ),
    ),
)
