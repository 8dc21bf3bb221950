"""Rotary positions: left out, neighbours against halves as pairs, the sense of the rotation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isograd.diagnose.flow import ARRANGING, Flow, flow_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values, operands
from isograd.frameworks.base import FunctionSite, Intervention, Operand, Place

_SLICING = ("getitem", "chunk", "split", "unbind", "narrow", "select", "tensor_split")
_VIEWING = ("view", "reshape", "unflatten", "flatten")
_ROTATING = ARRANGING | frozenset("mul add sub neg cat stack view_as_complex view_as_real".split())


@dataclass(frozen=True)
class Rotation:
    """A rotation found among the functions of a module.

    anchor: where the pairs' halves meet; form: "turned" for cat((-b, a)), "both" for
    cat((a*c - b*s, a*s + b*c)), "complex"; neighbours: pairs are neighbours, not halves.
    entries: functions that get the vectors, with the arguments; end: what yields the rotated ones.
    """

    anchor: FunctionSite
    form: str
    neighbours: bool
    entries: tuple[tuple[FunctionSite, str], ...]
    end: FunctionSite


def rotations(flow: Flow, module: str, until: int) -> Iterator[Rotation]:
    """Every rotation among the functions of a module."""
    for site in flow.sites[:until]:
        if site.place.module != module:
            continue
        found = None
        if site.place.function in ("cat", "stack"):
            found = _real(flow, site)
        elif site.place.function == "view_as_complex":
            found = _complex(flow, site)
        if found is not None:
            yield found


def _origin(flow: Flow, operand: Any) -> tuple[Operand | None, bool]:
    """The vectors that a half is taken from, and whether it holds every second element."""
    half = flow.maker(operand)
    if half is None or half.place.function not in _SLICING:
        return None, False
    whole = half.arguments.get("input")
    neighbours = ", 2)" in str(half.arguments.get("index"))
    before = flow.maker(whole)
    if isinstance(whole, Operand) and whole.shape and whole.shape[-1] == 2 and before is not None:
        if before.place.function in _VIEWING:
            return next(iter(operands(before)), None), True
    return (whole if isinstance(whole, Operand) else None), neighbours


def _real(flow: Flow, site: FunctionSite) -> Rotation | None:
    parts = site.arguments.get("tensors")
    if not isinstance(parts, tuple) or len(parts) != 2:
        return None
    first, second = (flow.maker(part) for part in parts)
    if first is None or second is None:
        return None
    if first.place.function == "neg":
        origin, neighbours = _origin(flow, parts[1])
        joined = _joined(flow, site)
        product = next((u for u in flow.after(joined) if u.place.function == "mul"), None)
        total = None
        if product is not None:
            total = next((u for u in flow.after(product) if u.place.function == "add"), None)
        form, end = "turned", total
    elif (first.place.function, second.place.function) == ("sub", "add"):
        product = flow.maker(first.arguments.get("input"))
        if product is None or product.place.function != "mul":
            return None
        candidates = [_origin(flow, o) for o in operands(product)]
        origin, neighbours = next(((o, n) for o, n in candidates if o is not None), (None, False))
        form, end = "both", _joined(flow, site)
    else:
        return None
    if origin is None or end is None:
        return None
    return _rotation(flow, site, form, neighbours, origin, end)


def _joined(flow: Flow, site: FunctionSite) -> FunctionSite:
    """What brings stacked pairs back into one axis; of a concatenation, itself."""
    if site.place.function == "cat":
        return site
    return next((u for u in flow.after(site) if u.place.function in _VIEWING), site)


def _complex(flow: Flow, site: FunctionSite) -> Rotation | None:
    before = flow.maker(site.arguments.get("input"))
    product = next((u for u in flow.after(site) if u.place.function == "mul"), None)
    if before is None or before.place.function not in _VIEWING or product is None:
        return None
    end = flow.ahead(product, lambda s: s.place.function in _VIEWING, _ROTATING)
    origin = next(iter(operands(before)), None)
    if end is None or origin is None:
        return None
    return _rotation(flow, product, "complex", True, origin, end)


def _rotation(
    flow: Flow,
    anchor: FunctionSite,
    form: str,
    neighbours: bool,
    origin: Operand,
    end: FunctionSite,
) -> Rotation | None:
    entries = []
    for site in flow.sites[: end.event]:
        if site.place.module != anchor.place.module or site.place.function == "module":
            continue
        names = [
            name
            for name, value in site.arguments.items()
            if isinstance(value, Operand) and value.source == origin.source
        ]
        if names and flow.ahead(site, lambda s: s is end, _ROTATING) is not None:
            entries += [(site, name) for name in names]
    if not entries or end.outputs[0].shape != origin.shape:
        return None
    return Rotation(anchor, form, neighbours, tuple(entries), end)


def _layouts(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = list(rotations(flow_of(context), site.place.module, site.event))
    if not found or len({r.neighbours for r in found}) != 1:
        return
    common = {"name": site.place.module, "neighbours": found[0].neighbours}
    entries = dict.fromkeys((e.place, name) for r in found for e, name in r.entries)
    yield {
        **common,
        "how": "everything",
        "entries": tuple(place for place, _ in entries),
        "arguments": tuple(name for _, name in entries),
        "ends": tuple(dict.fromkeys(r.end.place for r in found)),
    }
    turned = tuple(r.anchor.place for r in found if r.form == "turned")
    if turned:
        yield {**common, "how": "rotation alone", "anchors": turned}


def _left_out(site: FunctionSite, context: Context) -> Iterator[Values]:
    """All rotations of a module, and each alone."""
    found = list(rotations(flow_of(context), site.place.module, site.event))
    groups = [found] if found else []
    if len(found) > 1:
        groups += [[rotation] for rotation in found]
    for group in groups:
        first = [(r.entries[0][0].place, r.entries[0][1], r.end.place) for r in group]
        which = "" if group is found else f" of {_ordinal(found.index(group[0]))} {len(found)}"
        yield {"name": site.place.module, "rotations": tuple(first), "which": which}


def _ordinal(number: int) -> str:
    return ("the first of", "the second of", "the third of")[number] if number < 3 else "one of"


def _unrotated(call: Call, values: Values) -> Any:
    """The vectors go through as they came."""
    changes: list[Intervention] = []
    for entry, name, end in values["rotations"]:
        kept: list[Any] = []

        def keep(site: Any, _: Values, kept: list[Any] = kept, name: str = name) -> Any:
            kept[:] = [site[name]]
            return site.run()

        def pass_on(site: Any, _: Values, kept: list[Any] = kept) -> Any:
            return kept[0].reshape(site.run().shape)

        changes += [Intervention(entry, keep), Intervention(end, pass_on)]
    return call.together(values["name"], tuple(changes))


def _signs(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = list(rotations(flow_of(context), site.place.module, site.event))
    places = tuple(r.anchor.place for r in found if r.form in ("turned", "complex"))
    if places and len(places) == len(found):
        yield {"name": site.place.module, "anchors": places}


def _laid_out(call: Call, values: Values) -> Any:
    if values["how"] == "rotation alone":
        changes = [Intervention(place, _turned_otherwise) for place in values["anchors"]]
        return call.together(values["name"], tuple(changes))

    def arranged(tensor: Any, inverse: bool) -> Any:
        import torch

        width = tensor.shape[-1]
        order = [*range(0, width, 2), *range(1, width, 2)]  # every second one, then the others
        if inverse == values["neighbours"]:
            return tensor[..., torch.tensor(order)]
        return tensor[..., torch.tensor([order.index(i) for i in range(width)])]

    by_place: dict[Place, list[str]] = {}
    for place, name in zip(values["entries"], values["arguments"], strict=True):
        by_place.setdefault(place, []).append(name)

    # `inverse` is False where pairs are halves in the reference: what stands side by side in
    # the port is brought apart before, and back behind
    def entering(names: list[str]) -> Any:
        return lambda site, _: site.run(**{n: arranged(site[n], False) for n in names})

    changes = [Intervention(place, entering(names)) for place, names in by_place.items()]
    changes += [
        Intervention(place, lambda site, _: arranged(site.run(), True)) for place in values["ends"]
    ]
    return call.together(values["name"], tuple(changes))


def _turned_otherwise(site: Any, _: Values) -> Any:
    import torch

    first, second = site["tensors"][1], -site["tensors"][0]
    result = site.run()
    if site.function == "cat":  # halves: turn neighbours
        whole = torch.cat((first, second), -1)
        return torch.stack((-whole[..., 1::2], whole[..., ::2]), -1).flatten(-2)
    whole = torch.stack((first, second), -1).flatten(-2)
    one, other = whole.chunk(2, -1)
    return torch.cat((-other, one), -1).reshape(result.shape)


def _backwards(call: Call, values: Values) -> Any:
    def other(site: Any, _: Values) -> Any:
        if site.function == "mul":
            return site.run(other=site["other"].conj())
        return -site.run()

    changes = tuple(Intervention(place, other) for place in values["anchors"])
    return call.together(values["name"], changes)


_T = "t = torch.outer(torch.arange(5.0), 10000.0 ** (-torch.arange(0, 8, 2) / 8.0)).to(x)\n"
_MS_T = (
    "t = ops.arange(5).astype(ms.float32)[:, None]"
    " * ops.pow(10000.0, -ops.arange(0, 8, 2).astype(ms.float32) / 8.0)\n"
)
_HALVES = (
    _T + "c, s = torch.cat((t, t), -1).cos(), torch.cat((t, t), -1).sin()\n"
    "return x * c + torch.cat((-x[..., 4:], x[..., :4]), -1) * s"
)
_NEIGHBOURS = (
    _T + "a, b = x[..., ::2], x[..., 1::2]\n"
    "return torch.stack((a * t.cos() - b * t.sin(), a * t.sin() + b * t.cos()), -1).flatten(-2)"
)
_MS_NEIGHBOURS = (
    _MS_T + "a, b, c, s = x[..., ::2], x[..., 1::2], ops.cos(t), ops.sin(t)\n"
    "return ops.stack((a * c - b * s, a * s + b * c), -1).reshape(2, 5, 8)"
)
_MS_HALVES = (
    _MS_T + "a, b, c, s = x[..., :4], x[..., 4:], ops.cos(t), ops.sin(t)\n"
    "return ops.cat((a * c - b * s, a * s + b * c), -1)"
)
_X = ((2, 5, 8),)

HYPOTHESES = (
    FunctionHypothesis(
        "rotary_layout",
        "rotary.layout",
        ("module",),
        _layouts,
        _laid_out,
        "rotary positions turn {port} instead of {reference}",
        rank=2,
        reference_value=lambda site, context: next(
            (
                "neighbours" if r.neighbours else "halves"
                for r in rotations(flow_of(context), site.place.module, site.event)
            ),
            None,
        ),
        port_value=lambda values: (
            ("halves" if values["neighbours"] else "neighbours")
            + ("" if values["how"] == "everything" else " with the angles of the others")
        ),
        examples=(
            Example(_HALVES, _MS_NEIGHBOURS, _X, port_value="neighbours", proved=False),
            Example(_NEIGHBOURS, _MS_HALVES, _X, port_value="halves", proved=False),
            Example(
                _T + "z = torch.view_as_complex(x.reshape(2, 5, 4, 2))\n"
                "z = z * torch.polar(torch.ones_like(t), t)\n"
                "return torch.view_as_real(z).flatten(-2)",
                _MS_HALVES,
                _X,
                port_value="halves",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "rotary_missing",
        "rotary.missing",
        ("module",),
        _left_out,
        _unrotated,
        "rotary positions are left out{port}",
        rank=2,
        port_value=lambda values: values["which"],
        examples=(
            Example(_HALVES, "x * 1.0", _X, proved=False),
            Example(
                _T + "c, s = torch.cat((t, t), -1).cos(), torch.cat((t, t), -1).sin()\n"
                "q, k = [a * c + torch.cat((-a[..., 4:], a[..., :4]), -1) * s for a in (x, y)]\n"
                "return q @ k.transpose(-1, -2)",
                _MS_T + "a, b, c, s = x[..., :4], x[..., 4:], ops.cos(t), ops.sin(t)\n"
                "q = ops.cat((a * c - b * s, a * s + b * c), -1)\n"
                "return ops.matmul(q, y.swapaxes(-1, -2))",
                (*_X, *_X),
                port_value=" of the second of 2",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "rotary_sign",
        "rotary.sign",
        ("module",),
        _signs,
        _backwards,
        "rotary positions turn the other way",
        rank=3,
        examples=(
            Example(_HALVES, _MS_HALVES.replace("ops.sin(t)", "-ops.sin(t)"), _X, proved=False),
        ),
    ),
)
