"""Convolutions and linear layers: padding, stride, dilation, groups, bias, layout of weights."""

from __future__ import annotations

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
from isograd.frameworks.base import FunctionSite, Operand

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


def kernel_of(site: FunctionSite) -> tuple[int, ...]:
    weight = site.arguments.get("weight")
    return weight.shape[2:] if isinstance(weight, Operand) else ()


def _settings(site: FunctionSite) -> tuple[tuple[int, ...], ...]:
    """Padding, stride and dilation as tuples; padding of the string "same" as its number."""
    rank = spatial_rank(site.place.function)
    dilation = as_tuple(site.arguments.get("dilation", 1), rank)
    stride = as_tuple(site.arguments.get("stride", 1), rank)
    own = site.arguments.get("padding", 0)
    if own == "same":
        padding = tuple(d * (k - 1) // 2 for k, d in zip(kernel_of(site), dilation, strict=True))
    else:
        padding = as_tuple(own if numbers(own) else 0, rank)
    return padding, stride, dilation


def _pads(call: Call, padding: Any) -> list[tuple[int, int]]:
    """What a padding means on every side."""
    rank = spatial_rank(call.function)
    if padding == "same":
        return same_pads(
            tuple(call["input"].shape[-rank:]),
            tuple(call["weight"].shape[2:]),
            as_tuple(call["stride"], rank),
            as_tuple(call["dilation"], rank),
        )
    if isinstance(padding, tuple) and padding and padding[0] == "sides":
        return [tuple(side) for side in padding[1]]
    return [(p, p) for p in as_tuple(padding, rank)]


def _propose_padding(site: FunctionSite, context: Context) -> Iterator[Values]:
    own, _, dilation = _settings(site)
    kernel = kernel_of(site)
    if all(k == 1 for k in kernel) and not any(own):
        yield {"padding": 1}
        return
    yield {"padding": "same"}
    largest = max(d * (k - 1) for d, k in zip(dilation, kernel, strict=True))
    rank = len(own)
    for number in sorted({0, 1, *own, largest // 2, largest, *(p + 1 for p in own)}):
        if (number,) * rank != own:
            yield {"padding": number}
    if own != own[::-1]:
        yield {"padding": own[::-1]}
    if any(own):
        yield {"padding": ("sides", tuple((2 * p, 0) for p in own))}
        yield {"padding": ("sides", tuple((0, 2 * p) for p in own))}


def _other_padding(call: Call, values: Values) -> Any:
    return call.run(input=padded(call["input"], _pads(call, values["padding"])), padding=0)


def _padding_shown(values: Values) -> Any:
    found = values["padding"]
    if isinstance(found, tuple) and found and found[0] == "sides":
        return "at the start only" if found[1][0][0] else "at the end only"
    return found


def _plain(argument: str) -> Any:
    def value(site: FunctionSite, context: Context) -> Any:
        own = site.arguments.get(argument)
        alike = isinstance(own, tuple) and len(set(own)) == 1
        return own[0] if alike and isinstance(own, tuple) else own

    return value


def _propose_mode(site: FunctionSite, context: Context) -> Iterator[Values]:
    if any(_settings(site)[0]):
        for mode in ("reflect", "replicate", "circular"):
            yield {"padding_mode": mode}


def _other_mode(call: Call, values: Values) -> Any:
    own = call["padding"]
    pads = _pads(call, own)
    return call.run(input=padded(call["input"], pads, values["padding_mode"]), padding=0)


def _propose_stride(site: FunctionSite, context: Context) -> Iterator[Values]:
    _, own, _ = _settings(site)
    for number in (1, 2, 3, 4):
        if (number,) * len(own) != own:
            yield {"stride": number}
    if own != own[::-1]:
        yield {"stride": own[::-1]}


def _propose_dilation(site: FunctionSite, context: Context) -> Iterator[Values]:
    padding, _, own = _settings(site)
    kernel = kernel_of(site)
    if all(k == 1 for k in kernel):
        return
    for number in (1, 2, 3, 4, 6, 8):
        if (number,) * len(own) == own:
            continue
        kept = tuple(
            max(0, p + (number - d) * (k - 1) // 2)
            for p, d, k in zip(padding, own, kernel, strict=True)
        )
        for other in dict.fromkeys((kept, padding)):
            yield {"dilation": number, "padding": other}


IMAGE = ((2, 4, 9, 9),)
_CONV = "nn.Conv2d(4, 6, 3, padding=1, stride=2)"


def port_layer(**settings: Any) -> str:
    words = ", ".join(f"{k}={v!r}" for k, v in settings.items())
    return f"nn.Conv2d(4, 6, 3, has_bias=True, {words})"


HYPOTHESES = (
    FunctionHypothesis(
        "conv_padding",
        "conv.padding",
        CONVOLUTIONS,
        _propose_padding,
        _other_padding,
        "{function} with padding {port} instead of {reference}",
        "padding",
        rank=3,
        reference_value=_plain("padding"),
        port_value=_padding_shown,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x)",
                ((2, 4, 8, 8),),
                {"conv": (_CONV, port_layer(stride=2))},
                port_value="same",
            ),
            Example(
                "self.conv(x)",
                "self.conv(x)",
                IMAGE,
                {"conv": (_CONV, port_layer(stride=2, pad_mode="valid"))},
                port_value=0,
            ),
            Example(
                "self.conv(x)",
                "self.conv(x)",
                ((2, 4, 9, 13),),
                {
                    "conv": (
                        "nn.Conv2d(4, 6, 3, padding=(1, 0))",
                        port_layer(pad_mode="pad", padding=(0, 0, 1, 1)),
                    )
                },
                port_value="(0, 1)",
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_padding_mode",
        "conv.padding_mode",
        CONVOLUTIONS,
        _propose_mode,
        _other_mode,
        "{function} with padding of the kind {port} instead of {reference}",
        rank=3,
        reference_value=lambda site, context: "zeros",
        port_value=lambda values: values["padding_mode"],
        examples=(
            Example(
                "F.conv2d(x, y, padding=1)",
                "ops.conv2d(ops.pad(x, (1, 1, 1, 1), mode='reflect'), y, pad_mode='valid')",
                ((2, 4, 9, 9), (6, 4, 3, 3)),
                port_value="reflect",
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_stride",
        "conv.stride",
        CONVOLUTIONS,
        _propose_stride,
        lambda call, values: call.run(stride=values["stride"]),
        "{function} with stride {port} instead of {reference}",
        "stride",
        rank=3,
        reference_value=_plain("stride"),
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x)",
                IMAGE,
                {"conv": (_CONV, port_layer(stride=3, pad_mode="pad", padding=1))},
                port_value=3,
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_dilation",
        "conv.dilation",
        CONVOLUTIONS,
        _propose_dilation,
        lambda call, values: call.run(dilation=values["dilation"], padding=values["padding"]),
        "{function} with dilation {port} instead of {reference}",
        rank=3,
        reference_value=_plain("dilation"),
        port_value=lambda values: values["dilation"],
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x)",
                IMAGE,
                {
                    "conv": (
                        "nn.Conv2d(4, 6, 3, padding=2, dilation=2)",
                        port_layer(pad_mode="pad", padding=1),
                    )
                },
                port_value=1,
            ),
        ),
    ),
)
