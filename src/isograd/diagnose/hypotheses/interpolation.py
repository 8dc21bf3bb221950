"""Resizing: kernels, where the corners lie, antialiasing; shuffling pixels; sampling on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.hypotheses.resizing import resized
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

#: Kinds of resizing by the number of axes of the input.
_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
_CORNERED = ("linear", "bilinear", "trilinear", "bicubic")


def _rank(site: FunctionSite) -> int:
    operand = site.arguments.get("input")
    return len(operand.shape) if isinstance(operand, Operand) else 0


def prepares_input(site: FunctionSite, context: Context) -> bool:
    """Whether this resizes the network's own input before anything else: then it is data's."""
    operand = site.arguments.get("input")
    if context.root or not isinstance(operand, Operand):
        return False
    first = next((s for s in context.sites if s.place.function != "module"), None)
    return operand.source == "input.0" and site is first


def _corners(site: FunctionSite) -> Iterator[Values]:
    if site.arguments.get("mode") in _CORNERED:
        yield {"align_corners": not site.arguments.get("align_corners")}


def _modes(site: FunctionSite) -> Iterator[Values]:
    own, rank = site.arguments.get("mode", "nearest"), _rank(site)
    for mode in ("nearest", "nearest-exact", _LINEAR.get(rank), "bicubic", "area"):
        if mode is None or mode == own or (mode == "bicubic" and rank != 4):
            continue
        if mode in _CORNERED:
            yield {"mode": mode, "align_corners": False, "antialias": False}
            yield {"mode": mode, "align_corners": True, "antialias": False}
        else:
            yield {"mode": mode, "align_corners": None, "antialias": False}


def _antialias(site: FunctionSite) -> Iterator[Values]:
    if site.arguments.get("mode") in ("bilinear", "bicubic"):
        yield {"antialias": not site.arguments.get("antialias", False)}


def _by_matrices(site: FunctionSite) -> Iterator[Values]:
    mode = site.arguments.get("mode", "nearest")
    if mode == "bicubic" and not site.arguments.get("antialias"):
        yield {"kernel": "cubic", "coefficient": -0.5}
        # MindSpore's own: weights from a table, and of half-pixel places only pixels that exist
        yield {"kernel": "cubic", "coefficient": -0.5, "table": 1024, "inside": True}
        yield {"kernel": "cubic", "coefficient": -0.75, "table": 1024}
    if mode in _LINEAR.values() and not site.arguments.get("antialias"):
        yield {"kernel": "linear", "coordinates": "asymmetric"}
    if mode.startswith("nearest"):
        yield {"kernel": "nearest", "coordinates": "align_corners"}
        yield {"kernel": "nearest", "coordinates": "half-pixel, down"}
        yield {"kernel": "nearest", "coordinates": "up"}


def _rerun(call: Call, values: Values) -> Any:
    return call.run(**values)


def _scales(site: FunctionSite) -> Iterator[Values]:
    """A size instead of a factor: another step between pixels where the factor leaves a rest."""
    operand, factor = site.arguments.get("input"), site.arguments.get("scale_factor")
    if not isinstance(operand, Operand) or factor is None or not site.outputs:
        return
    if site.arguments.get("recompute_scale_factor"):
        return
    sizes, wanted = operand.shape[2:], site.outputs[0].shape[2:]
    factors = factor if isinstance(factor, tuple) else (factor,) * len(sizes)
    if any(abs(s * f - w) > 1e-6 for s, f, w in zip(sizes, factors, wanted, strict=True)):
        yield {"size": tuple(wanted), "scale_factor": None}


def _elsewhere(candidates: Callable[[FunctionSite], Iterator[Values]]) -> Any:
    """Within the network: not where its input is prepared."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        if not prepares_input(site, context):
            yield from candidates(site)

    return propose


def _at_input(site: FunctionSite, context: Context) -> Iterator[Values]:
    if prepares_input(site, context):
        for candidates in (_corners, _modes, _antialias, _by_matrices, _scales):
            yield from candidates(site)


def _at_input_change(call: Call, values: Values) -> Any:
    return resized(call, values) if "kernel" in values else call.run(**values)


def _shown(values: Values) -> str:
    return ", ".join(f"{k}={v}" for k, v in values.items() if v is not None)


def _of_reference(site: FunctionSite, context: Context) -> str:
    wanted = ("mode", "align_corners", "antialias")
    return _shown({k: site.arguments.get(k) for k in wanted})


def _coefficient(values: Values) -> Any:
    words = f", weights from a table of {values['table']}" if "table" in values else ""
    return f"{values['coefficient']}{words}"


_IMAGE = ((2, 3, 6, 7),)
#: Behind another function, else the resizing would be the data's.
_BILINEAR = "F.interpolate(x * 2, size=(9, 12), mode='bilinear', align_corners={})"

HYPOTHESES = (
    FunctionHypothesis(
        "interpolate_align_corners",
        "interpolate.align_corners",
        ("interpolate",),
        _elsewhere(_corners),
        _rerun,
        "interpolation with align_corners={port} instead of {reference}",
        "align_corners",
        rank=1,
        examples=(
            Example(
                _BILINEAR.format(True),
                "ops.interpolate(x * 2, size=(9, 12), mode='bilinear', align_corners=False)",
                _IMAGE,
                port_value=False,
            ),
            Example(
                "self.up(x * 2)",
                "ops.interpolate(x * 2, size=(12, 14), mode='bilinear', align_corners=True)",
                _IMAGE,
                {"up": ("nn.Upsample(scale_factor=2, mode='bilinear')", "nn.Identity()")},
                port_value=True,
            ),
        ),
    ),
    FunctionHypothesis(
        "interpolate_mode",
        "interpolate.mode",
        ("interpolate",),
        _elsewhere(_modes),
        _rerun,
        "interpolation of the kind {port} instead of {reference}",
        rank=2,
        reference_value=lambda site, context: site.arguments.get("mode"),
        port_value=lambda values: values["mode"],
        examples=(
            Example(
                _BILINEAR.format(True),
                "ops.interpolate(x * 2, size=(9, 12), mode='nearest')",
                _IMAGE,
                port_value="nearest",
            ),
            Example(
                "F.interpolate(x * 2, scale_factor=2)",
                "ops.interpolate(x * 2, size=(12, 14), mode='bilinear', align_corners=True)",
                _IMAGE,
                port_value="bilinear",
            ),
        ),
    ),
    FunctionHypothesis(
        "interpolate_antialias",
        "interpolate.antialias",
        ("interpolate",),
        _elsewhere(_antialias),
        _rerun,
        "interpolation with antialias={port} instead of {reference}",
        "antialias",
        rank=2,
        examples=(
            Example(
                "F.interpolate(x * 2, size=(3, 4), mode='bilinear', antialias=True)",
                "ops.interpolate(x * 2, size=(3, 4), mode='bilinear', align_corners=False)",
                _IMAGE,
                port_value=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "interpolate_cubic",
        "interpolate.cubic_coefficient",
        ("interpolate",),
        _elsewhere(lambda s: (v for v in _by_matrices(s) if v["kernel"].startswith("cubic"))),
        resized,
        "bicubic interpolation with the coefficient {port} instead of {reference}",
        rank=2,
        reference_value=lambda site, context: -0.75,
        port_value=_coefficient,
        examples=(
            Example(
                "F.interpolate(x * 2, size=(9, 14), mode='bicubic')",
                "ops.interpolate(x * 2, size=(9, 14), mode='bicubic', align_corners=False)",
                _IMAGE,
                port_value="-0.5, weights from a table of 1024",
            ),
            Example(
                "F.interpolate(x * 2, size=(9, 14), mode='bicubic', align_corners=True)",
                "ops.interpolate(x * 2, size=(9, 14), mode='bicubic', align_corners=True)",
                _IMAGE,
                port_value="-0.75, weights from a table of 1024",
            ),
        ),
    ),
    FunctionHypothesis(
        "interpolate_coordinates",
        "interpolate.coordinates",
        ("interpolate",),
        _elsewhere(lambda s: (v for v in _by_matrices(s) if "coordinates" in v)),
        resized,
        "interpolation with coordinates of the kind {port}",
        rank=3,
        reference_value=_of_reference,
        port_value=lambda values: values["coordinates"],
        examples=(
            Example(
                "F.interpolate(x * 2, size=(9, 12))",
                "ops.ResizeNearestNeighbor((9, 12), align_corners=True)(x * 2)",
                _IMAGE,
                port_value="align_corners",
            ),
            Example(
                _BILINEAR.format(False),
                "ops.ResizeBilinearV2(False, False)(x * 2, (9, 12))",
                _IMAGE,
                port_value="asymmetric",
            ),
        ),
    ),
    FunctionHypothesis(
        "interpolate_scale_factor",
        "interpolate.scale_factor",
        ("interpolate",),
        _elsewhere(_scales),
        _rerun,
        "interpolation by the ratio of the sizes instead of the given factor {reference}",
        rank=2,
        reference_value=lambda site, context: site.arguments.get("scale_factor"),
        port_value=lambda values: f"to {values['size']}",
        examples=(
            Example(
                "F.interpolate(x * 2, scale_factor=1.5, mode='bilinear')",
                "ops.interpolate(x * 2, size=(9, 10), mode='bilinear', align_corners=False)",
                _IMAGE,
            ),
        ),
    ),
    FunctionHypothesis(
        "data_resize",
        "data.resize",
        ("interpolate",),
        _at_input,
        _at_input_change,
        "the network's input is resized with {port} instead of {reference}",
        rank=2,
        reference_value=_of_reference,
        port_value=_shown,
        examples=(
            Example(
                "self.conv(F.interpolate(x, size=(9, 12), mode='bilinear'))",
                "self.conv(ops.interpolate(x, size=(9, 12), mode='bilinear', align_corners=True))",
                _IMAGE,
                {
                    "conv": (
                        "nn.Conv2d(3, 4, 3)",
                        "nn.Conv2d(3, 4, 3, pad_mode='valid', has_bias=True)",
                    )
                },
            ),
        ),
    ),
)
