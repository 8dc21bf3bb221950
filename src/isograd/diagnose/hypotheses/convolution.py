"""Convolutions and linear layers: padding, stride, dilation, groups, bias, layout of weights."""

from __future__ import annotations

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

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


def _kernel(site: FunctionSite) -> tuple[int, ...]:
    weight = site.arguments.get("weight")
    return weight.shape[2:] if isinstance(weight, Operand) else ()


def _settings(site: FunctionSite) -> tuple[tuple[int, ...], ...]:
    """Padding, stride and dilation as tuples; padding of the string "same" as its number."""
    rank = spatial_rank(site.place.function)
    dilation = as_tuple(site.arguments.get("dilation", 1), rank)
    stride = as_tuple(site.arguments.get("stride", 1), rank)
    own = site.arguments.get("padding", 0)
    if own == "same":
        padding = tuple(d * (k - 1) // 2 for k, d in zip(_kernel(site), dilation, strict=True))
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
    kernel = _kernel(site)
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
    kernel = _kernel(site)
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


def _propose_groups(site: FunctionSite, context: Context) -> Iterator[Values]:
    groups = site.arguments.get("groups", 1)
    operand = site.arguments.get("input")
    if groups == 1 or not isinstance(operand, Operand):
        return
    axis = -1 - spatial_rank(site.place.function)
    if groups < operand.shape[axis]:
        yield {"groups": "input channels interleaved"}
    yield {"groups": "output channels interleaved"}
    yield {"groups": "none, the weights repeated"}


def _interleaved(x: Any, groups: int, axis: int) -> Any:
    return x.unflatten(axis, (-1, groups)).transpose(axis, axis + 1).flatten(axis, axis + 1)


def _other_groups(call: Call, values: Values) -> Any:
    groups = call["groups"]
    rank = spatial_rank(call.function)
    axis = call["input"].dim() - 1 - rank
    if values["groups"].startswith("input"):
        return call.run(input=_interleaved(call["input"], groups, axis))
    if values["groups"].startswith("output"):
        return _interleaved(call.run(), groups, axis)
    return call.run(weight=call["weight"].repeat(1, groups, *[1] * rank), groups=1)


def _propose_bias(site: FunctionSite, context: Context) -> Iterator[Values]:
    if isinstance(site.arguments.get("bias"), Operand):
        yield {"bias": None}


def _propose_layout(site: FunctionSite, context: Context) -> Iterator[Values]:
    weight = site.arguments.get("weight")
    kernel = _kernel(site)
    if not isinstance(weight, Operand):
        return
    if any(k > 1 for k in kernel):
        yield {"layout": "flipped"}
    if len(kernel) == 2 and kernel[0] == kernel[1] > 1:
        yield {"layout": "height and width swapped"}
    if weight.shape[0] == weight.shape[1] > 1:
        yield {"layout": "input and output channels swapped"}


def _other_layout(call: Call, values: Values) -> Any:
    weight = call["weight"]
    if values["layout"] == "flipped":
        return call.run(weight=weight.flip(list(range(2, weight.dim()))))
    axes = (2, 3) if values["layout"].startswith("height") else (0, 1)
    return call.run(weight=weight.transpose(*axes))


def _propose_transposed(site: FunctionSite, context: Context) -> Iterator[Values]:
    name = "weight" if site.place.function == "linear" else "other"
    weight = site.arguments.get(name)
    if not isinstance(weight, Operand) or rank_of(weight) != 2:
        return
    if site.place.function != "linear" and not weight.source.startswith("parameter."):
        return
    if weight.shape[0] == weight.shape[1]:
        yield {"argument": name}


def _transposed(call: Call, values: Values) -> Any:
    name = values["argument"]
    return call.run(**{name: call[name].transpose(0, 1)})


def _missing_bias(name: str, id: str, functions: tuple[str, ...], example: Example) -> Hypothesis:
    return Hypothesis(
        name,
        id,
        functions,
        _propose_bias,
        lambda call, values: call.run(bias=None),
        "{function} without its bias",
        reference_value=lambda site, context: "applied",
        port_value=lambda values: "missing",
        rank=2,
        examples=(example,),
    )


_IMAGE = ((2, 4, 9, 9),)
_CONV = "nn.Conv2d(4, 6, 3, padding=1, stride=2)"


def _conv(**settings: Any) -> str:
    words = ", ".join(f"{k}={v!r}" for k, v in settings.items())
    return f"nn.Conv2d(4, 6, 3, has_bias=True, {words})"


HYPOTHESES = (
    Hypothesis(
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
                {"conv": (_CONV, _conv(stride=2))},
                port_value="same",
            ),
            Example(
                "self.conv(x)",
                "self.conv(x)",
                _IMAGE,
                {"conv": (_CONV, _conv(stride=2, pad_mode="valid"))},
                port_value=0,
            ),
            Example(
                "self.conv(x)",
                "self.conv(x)",
                ((2, 4, 9, 13),),
                {
                    "conv": (
                        "nn.Conv2d(4, 6, 3, padding=(1, 0))",
                        _conv(pad_mode="pad", padding=(0, 0, 1, 1)),
                    )
                },
                port_value="(0, 1)",
            ),
        ),
    ),
    Hypothesis(
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
    Hypothesis(
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
                _IMAGE,
                {"conv": (_CONV, _conv(stride=3, pad_mode="pad", padding=1))},
                port_value=3,
            ),
        ),
    ),
    Hypothesis(
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
                _IMAGE,
                {
                    "conv": (
                        "nn.Conv2d(4, 6, 3, padding=2, dilation=2)",
                        _conv(pad_mode="pad", padding=1),
                    )
                },
                port_value=1,
            ),
        ),
    ),
    Hypothesis(
        "conv_groups",
        "conv.groups",
        CONVOLUTIONS,
        _propose_groups,
        _other_groups,
        "{function} with groups held otherwise: {port}",
        rank=3,
        reference_value=lambda site, context: site.arguments.get("groups"),
        port_value=lambda values: values["groups"],
        examples=(
            Example(
                "F.conv2d(x, y, groups=2)",
                "n = x.shape[0]\n"
                "x = x.reshape(n, 4, 2, 9, 9).swapaxes(1, 2).reshape(n, 8, 9, 9)\n"
                "return ops.conv2d(x, y, pad_mode='valid', groups=2)",
                ((2, 8, 9, 9), (6, 4, 3, 3)),
                port_value="input channels interleaved",
            ),
        ),
    ),
    _missing_bias(
        "conv_bias",
        "conv.bias",
        (*CONVOLUTIONS, "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        Example(
            "F.conv2d(x, y, z, padding=1)",
            "ops.conv2d(x, y, pad_mode='pad', padding=1) + 0 * z.sum()",
            ((2, 4, 9, 9), (6, 4, 3, 3), (6,)),
        ),
    ),
    _missing_bias(
        "linear_bias",
        "linear.bias",
        ("linear",),
        Example(
            "self.fc(x)",
            "ops.matmul(x, self.fc.weight.T) + 0 * self.fc.bias",
            modules={"fc": ("nn.Linear(8, 5)", "nn.Dense(8, 5)")},
        ),
    ),
    Hypothesis(
        "conv_flipped",
        "conv.flipped",
        CONVOLUTIONS,
        lambda site, context: (
            v for v in _propose_layout(site, context) if v["layout"] == "flipped"
        ),
        _other_layout,
        "{function} with the kernel flipped: convolution instead of correlation",
        reference_value=lambda site, context: "correlation",
        port_value=lambda values: "convolution",
        rank=3,
        examples=(
            Example(
                "F.conv1d(x, y)",
                "ops.conv1d(x, y.flip((2,)), pad_mode='valid')",
                ((2, 4, 9), (6, 4, 3)),
            ),
        ),
    ),
    Hypothesis(
        "conv_transposed",
        "conv.transposed",
        CONVOLUTIONS,
        lambda site, context: (
            v for v in _propose_layout(site, context) if v["layout"] != "flipped"
        ),
        _other_layout,
        "{function} with the kernel's {port}",
        reference_value=lambda site, context: "as held",
        port_value=lambda values: values["layout"],
        rank=3,
        examples=(
            Example(
                "self.conv(x)",
                "ops.conv2d(x, self.conv.weight.swapaxes(2, 3), self.conv.bias, pad_mode='valid')",
                _IMAGE,
                {"conv": ("nn.Conv2d(4, 6, 3)", _conv(pad_mode="valid"))},
                port_value="height and width swapped",
            ),
        ),
    ),
    Hypothesis(
        "linear_transposed",
        "linear.transposed",
        ("linear", "matmul"),
        _propose_transposed,
        _transposed,
        "{function} with the weight transposed",
        reference_value=lambda site, context: "as held",
        port_value=lambda values: "transposed",
        rank=3,
        examples=(
            Example(
                "self.fc(x)",
                "ops.matmul(x, self.fc.weight) + self.fc.bias",
                modules={"fc": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")},
            ),
        ),
    ),
)
