"""Another kind of normalisation than the reference's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import rank_of
from isograd.diagnose.hypotheses.normalisation import standardised
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values, operands
from isograd.frameworks.base import FunctionSite, Operand

_REFERENCE = {"batch_norm": "batch", "group_norm": "group", "instance_norm": "instance"}
#: Over which axes each kind normalises, of an input with channels at axis 1.
_KINDS = ("batch", "instance", "layer over all but the batch", "layer over the channels")


def _axes(kind: str, rank: int) -> list[int]:
    if kind == "batch":
        return [0, *range(2, rank)]
    if kind == "instance":
        return list(range(2, rank))
    return [1] if kind.endswith("channels") else list(range(1, rank))


def _propose_kind(site: FunctionSite, context: Context) -> Iterator[Values]:
    rank = rank_of(site.arguments.get("input"))
    for kind in _KINDS:
        known = kind == _REFERENCE[site.place.function] or (
            # groups of another number say the same more exactly
            site.place.function == "group_norm" and kind in (_KINDS[1], _KINDS[2])
        )
        if not known and _axes(kind, rank):
            yield {"kind": kind}


def _other_kind(call: Call, values: Values) -> Any:
    x = call["input"]
    eps = float(call.arguments.get("eps", 1e-5))
    result = standardised(x, _axes(values["kind"], x.dim()), eps, False, False)
    shape = [-1 if d == 1 else 1 for d in range(x.dim())]
    weight, bias = call.arguments.get("weight"), call.arguments.get("bias")
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def _once(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {"kind": "RMS" if site.place.function == "layer_norm" else "layer"}


def _axes_of_shape(call: Call) -> list[int]:
    return list(range(-len(tuple(call["normalized_shape"])), 0))


def _rms_or_layer(call: Call, values: Values) -> Any:
    """Layer normalisation without taking off the mean, or RMS normalisation that does."""
    x, axes = call["input"], _axes_of_shape(call)
    mean = x.mean(axes, keepdim=True)
    if values["kind"] == "layer":
        return call.run(input=x - mean)
    eps = float(call.arguments.get("eps", 1e-5))
    result = x * (x.square().mean(axes, keepdim=True) + eps).rsqrt()
    weight, bias = call.arguments.get("weight"), call.arguments.get("bias")
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _propose_centre(site: FunctionSite, context: Context) -> Iterator[Values]:
    """x minus its own mean, then standardised by hand: the mean may be forgotten."""
    mean = context.producer(site.arguments.get("other"))
    own = site.arguments.get("input")
    if mean is None or mean.place.function != "mean" or not isinstance(own, Operand):
        return
    same = own.source in [o.source for o in operands(mean)]
    if same and context.leads_to(site, ("rsqrt", "sqrt", "pow", "div", "std", "var"), 3):
        yield {"kind": "mean not subtracted"}


def _own_rms(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A module of the user that holds x · rsqrt(mean(x²) + eps) and nothing else that mixes."""
    inside = [s.place.function for s in context.sites if s.place.module == site.place.module]
    allowed = {"pow", "square", "mul", "mean", "add", "rsqrt", "sqrt", "div", "module", "to"}
    allowed |= {"float", "type_as", "rdiv"}
    roots = sum(name in ("rsqrt", "sqrt") for name in inside)
    if "mean" in inside and roots == 1 and set(inside) <= allowed and "0" in site.arguments:
        yield {"kind": "layer"}


def _centred(call: Call, values: Values) -> Any:
    x = call["0"]
    return call.run(**{"0": x - x.mean(-1, keepdim=True)})


_RMS = "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 1e-5)"
_INSTANCE = (
    "m = x.mean(axis=(2, 3), keep_dims=True)\n"
    "v = ((x - m) ** 2).mean(axis=(2, 3), keep_dims=True)\n"
    "return (x - m) / ops.sqrt(v + 1e-5)"
)

HYPOTHESES = (
    FunctionHypothesis(
        "norm_kind",
        "norm.kind",
        tuple(_REFERENCE),
        _propose_kind,
        _other_kind,
        "normalisation of the kind {port} instead of {reference}",
        reference_value=lambda site, context: _REFERENCE[site.place.function],
        port_value=lambda values: values["kind"],
        rank=4,
        examples=(
            Example(
                "F.batch_norm(x, None, None, training=True)",
                _INSTANCE,
                ((4, 6, 5, 5),),
                port_value="instance",
            ),
            Example(
                "F.group_norm(x, 2)",
                _INSTANCE.replace("(2, 3)", "1"),
                ((4, 6, 5, 5),),
                port_value="layer over the channels",
            ),
        ),
    ),
    FunctionHypothesis(
        "rms_norm_kind",
        "rms_norm.kind",
        ("rms_norm", "layer_norm"),
        _once,
        _rms_or_layer,
        "{port} normalisation instead of {reference} normalisation",
        reference_value=lambda site, context: (
            "layer" if site.place.function == "layer_norm" else "RMS"
        ),
        port_value=lambda values: values["kind"],
        rank=3,
        examples=(
            Example("F.layer_norm(x, (8,))", _RMS, port_value="RMS"),
            Example(
                "F.rms_norm(x, (8,), eps=1e-5)",
                "d = x - x.mean(axis=-1, keep_dims=True)\n"
                "return d / ops.sqrt((d * d).mean(axis=-1, keep_dims=True) + 1e-5)",
                port_value="layer",
            ),
        ),
    ),
    FunctionHypothesis(
        "norm_centre",
        "rms_norm.kind",
        ("sub",),
        _propose_centre,
        lambda call, values: call["input"] * 1.0,
        "normalisation without subtracting the mean",
        reference_value=lambda site, context: "mean subtracted",
        port_value=lambda values: values["kind"],
        rank=3,
        examples=(
            Example(
                "d = x - x.mean(-1, keepdim=True)\n"
                "return d / torch.sqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5)",
                _RMS,
                port_value="mean not subtracted",
            ),
        ),
    ),
    FunctionHypothesis(
        "rms_norm_by_hand_kind",
        "rms_norm.kind",
        ("module",),
        _own_rms,
        _centred,
        "layer normalisation instead of RMS normalisation",
        reference_value=lambda site, context: "RMS",
        port_value=lambda values: values["kind"],
        rank=4,
        examples=(
            Example(
                "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)",
                "d = x - x.mean(axis=-1, keep_dims=True)\n"
                "return d / ops.sqrt((d * d).mean(axis=-1, keep_dims=True) + 1e-5)",
                port_value="layer",
            ),
        ),
    ),
)
