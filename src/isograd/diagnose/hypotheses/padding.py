"""Padding on its own, and transposed convolutions, whose padding takes away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import as_tuple, numbers, spatial_rank
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
)
from isograd.frameworks.base import FunctionSite, Operand

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_TRANSPOSED = tuple(f"conv_transpose{n}d" for n in "123")
_MODES = {
    "constant": "zeros",
    "reflect": "reflect",
    "replicate": "replicate",
    "circular": "circular",
}


def _for_convolution(site: FunctionSite, context: Context) -> bool:
    return any(c.place.function in _CONVOLUTIONS for c in context.consumers(site))


def _pad(site: FunctionSite) -> tuple[int, ...]:
    own = site.arguments.get("pad")
    return own if isinstance(own, tuple) and numbers(own) else ()


def _propose_mode(site: FunctionSite, context: Context) -> Iterator[Values]:
    own, pad = site.arguments.get("mode", "constant"), _pad(site)
    operand = site.arguments.get("input")
    rank = len(operand.shape) if isinstance(operand, Operand) else 0
    if not pad or min(pad) < 0 or len(pad) not in (2 * rank - 4, 2 * rank - 2):
        return
    for mode in _MODES:
        if mode != own and (mode == "constant" or len(pad) == 2 * rank - 4):
            yield {"mode": mode}


def _other_mode(call: Call, values: Values) -> Any:
    from torch.nn import functional

    return functional.pad(call["input"], tuple(call["pad"]), values["mode"])


def _of(convolution: bool, propose: Any) -> Any:
    def chosen(site: FunctionSite, context: Context) -> Iterator[Values]:
        if _for_convolution(site, context) == convolution:
            yield from propose(site, context)

    return chosen


def _propose_sides(site: FunctionSite, context: Context) -> Iterator[Values]:
    pad = _pad(site)
    pairs = [pad[i : i + 2] for i in range(0, len(pad), 2)]
    total = [sum(pair) for pair in pairs]
    candidates = [
        tuple(n for pair in pairs for n in pair[::-1]),
        tuple(n for pair in pairs[::-1] for n in pair),
        tuple(n for t in total for n in (t // 2, t - t // 2)),
        tuple(n for t in total for n in (t - t // 2, t // 2)),
        tuple(n for t in total for n in (t, 0)),
        tuple(n for t in total for n in (0, t)),
        (0,) * len(pad),
    ]
    for candidate in dict.fromkeys(candidates):
        if candidate != pad:
            yield {"pad": candidate}


def _propose_value(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _pad(site) and site.arguments.get("mode", "constant") == "constant" and max(_pad(site)) > 0:
        yield {}


def _with_mode(name: str, id: str, convolution: bool, example: Example) -> FunctionHypothesis:
    return FunctionHypothesis(
        name,
        id,
        ("pad",),
        _of(convolution, _propose_mode),
        _other_mode,
        "padding of the kind {port} instead of {reference}",
        rank=3,
        reference_value=lambda site, context: _MODES.get(
            str(site.arguments.get("mode", "constant")), "?"
        ),
        port_value=lambda values: _MODES[values["mode"]],
        examples=(example,),
    )


def _with_sides(name: str, id: str, convolution: bool, example: Example) -> FunctionHypothesis:
    return FunctionHypothesis(
        name,
        id,
        ("pad",),
        _of(convolution, _propose_sides),
        lambda call, values: call.run(pad=values["pad"]),
        "padding by {port} instead of {reference} (of the last axis first)",
        rank=3,
        reference_value=lambda site, context: str(_pad(site)),
        port_value=lambda values: str(values["pad"]),
        examples=(example,),
    )


def _settings(arguments: Any, function: str) -> tuple[tuple[int, ...], ...]:
    rank = spatial_rank(function)
    names = (("stride", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1))
    return tuple(as_tuple(arguments.get(name, default), rank) for name, default in names)


def _propose_transposed(site: FunctionSite, context: Context) -> Iterator[Values]:
    _, own, _, _ = _settings(site.arguments, site.place.function)
    weight = site.arguments.get("weight")
    kernel = weight.shape[2:] if isinstance(weight, Operand) else ()
    if any(k > 1 for k in kernel):
        yield {"padding": "same"}
        yield {"padding": "same, more at the start"}
    for number in range(max(kernel, default=0)):
        if (number,) * len(own) != own:
            yield {"padding": number}


def _transposed(call: Call, values: Values) -> Any:
    """The whole result, of which other parts are taken."""
    stride, _, _, dilation = _settings(call.arguments, call.function)
    if isinstance(values["padding"], int):
        return call.run(padding=values["padding"])
    x, weight, bias = call["input"], call["weight"], call.arguments.get("bias")
    whole = call.run(bias=None, padding=0, output_padding=0)
    for axis, (s, d) in enumerate(zip(stride, dilation, strict=True), start=2):
        wanted = x.shape[axis] * s
        extra = max(0, d * (weight.shape[axis] - 1) + 1 - s)
        before = extra // 2 if values["padding"] == "same" else extra - extra // 2
        if whole.shape[axis] < before + wanted:
            missing = before + wanted - whole.shape[axis]
            shape = [missing if i == axis else n for i, n in enumerate(whole.shape)]
            import torch

            whole = torch.cat((whole, whole.new_zeros(shape)), axis)
        whole = whole.narrow(axis, before, wanted)
    if bias is None:
        return whole
    return whole + bias.reshape([-1 if d == 1 else 1 for d in range(whole.dim())])


def _propose_beyond(site: FunctionSite, context: Context) -> Iterator[Values]:
    stride, _, own, _ = _settings(site.arguments, site.place.function)
    for number in range(max(stride)):
        if (number,) * len(own) != own:
            yield {"output_padding": number}


def _propose_flip(site: FunctionSite, context: Context) -> Iterator[Values]:
    weight = site.arguments.get("weight")
    if isinstance(weight, Operand) and any(k > 1 for k in weight.shape[2:]):
        yield {"kernel": "flipped"}


def _flipped(call: Call, values: Values) -> Any:
    weight = call["weight"]
    return call.run(weight=weight.flip(list(range(2, weight.dim()))))


_UP = ("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)",)
_UP_PORT = "nn.Conv2dTranspose(4, 6, 3, stride=2, has_bias=True, pad_mode={})"

HYPOTHESES = (
    _with_mode(
        "pad_mode_of_convolution",
        "conv.padding_mode",
        True,
        Example(
            "self.conv(x)",
            "self.conv(x)",
            ((2, 4, 9, 9),),
            {
                "conv": (
                    "nn.Conv2d(4, 6, 3, padding=1, padding_mode='reflect')",
                    "nn.Conv2d(4, 6, 3, pad_mode='pad', padding=1, has_bias=True)",
                )
            },
            port_value="zeros",
        ),
    ),
    _with_mode(
        "pad_mode",
        "pad.mode",
        False,
        Example(
            "F.pad(x, (1, 2), mode='reflect')",
            "ops.pad(x, (1, 2), mode='replicate')",
            port_value="replicate",
        ),
    ),
    _with_sides(
        "pad_of_convolution",
        "conv.padding",
        True,
        Example(
            "F.conv2d(F.pad(x, (0, 1, 0, 1)), y, stride=2)",
            "ops.conv2d(ops.pad(x, (1, 0, 1, 0)), y, stride=2, pad_mode='valid')",
            ((2, 4, 8, 8), (6, 4, 3, 3)),
            port_value="(1, 0, 1, 0)",
        ),
    ),
    _with_sides(
        "pad_sides",
        "pad.pad",
        False,
        Example("F.pad(x, (1, 0)) * 2", "ops.pad(x, (0, 1)) * 2", port_value="(0, 1)"),
    ),
    FunctionHypothesis(
        "pad_value",
        "pad.value",
        ("pad",),
        _propose_value,
        lambda call, values: call.run(mode="constant", value=values["value"]),
        "padding with {port} instead of {reference}",
        numbers=(Number("value", (0.0, 1.0, -1.0), Scale.LINEAR),),
        reference_value=lambda site, context: site.arguments.get("value") or 0.0,
        rank=4,
        examples=(Example("F.pad(x, (1, 1), value=-1.0)", "ops.pad(x, (1, 1))", port_value=0.0),),
    ),
    FunctionHypothesis(
        "conv_transpose_padding",
        "conv_transpose.padding",
        _TRANSPOSED,
        _propose_transposed,
        _transposed,
        "{function} with padding {port} instead of {reference}",
        "padding",
        rank=3,
        examples=(
            Example(
                "self.up(x)",
                "self.up(x)",
                ((2, 4, 5, 5),),
                {"up": (*_UP, _UP_PORT.format("'same'"))},
                port_value="same",
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_transpose_output_padding",
        "conv_transpose.output_padding",
        _TRANSPOSED,
        _propose_beyond,
        lambda call, values: call.run(**values),
        "{function} with output_padding {port} instead of {reference}",
        "output_padding",
        rank=3,
        examples=(
            Example(
                "self.up(x)",
                "self.up(x)",
                ((2, 4, 5, 5),),
                {"up": (*_UP, _UP_PORT.format("'pad', padding=1"))},
                port_value=0,
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_transpose_flipped",
        "conv_transpose.flipped",
        _TRANSPOSED,
        _propose_flip,
        _flipped,
        "{function} with the kernel flipped",
        rank=3,
        reference_value=lambda site, context: "as held",
        port_value=lambda values: values["kernel"],
        examples=(
            Example(
                "F.conv_transpose1d(x, y)",
                "ops.conv1d(x, y.swapaxes(0, 1), pad_mode='pad', padding=2)",
                ((2, 4, 9), (4, 6, 3)),
            ),
        ),
    ),
)
