"""Weights that are stored as the tensors that they are computed from, known by names and shapes.

torch writes a weight norm as `weight_g` and `weight_v`, or as `parametrizations.weight.original0`
and `original1`; a spectral norm as `weight_orig`, `weight_u` and `weight_v`, or as
`parametrizations.weight.original` with `_u` and `_v` of its module `0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from isograd.pairing.transforms import Shape

Fold = Literal["weight_norm", "spectral_norm"]


@dataclass(frozen=True)
class Parametrized:
    """A weight that is not stored itself.

    parts: of a weight norm its length and direction; of a spectral norm the weight as it is
    trained, and the vectors u and v.
    """

    name: str
    fold: Fold
    parts: tuple[str, ...]
    shape: Shape


def parametrized_in(shapes: Mapping[str, Shape]) -> list[Parametrized]:
    """The weights of a network that are stored as parts; shapes: of all its tensors, by name."""
    inside: dict[str, set[str]] = {}
    for name in shapes:
        home = _home(name)
        if home is not None:
            inside.setdefault(home, set()).add(name)
    found = []
    for name in shapes:
        made = _with_suffixes(name, shapes) or _in_module(name, shapes, inside)
        if made is not None and made.name not in shapes:
            found.append(made)
    return found


def folded_shape(fold: Fold, shapes: list[Shape]) -> Shape:
    """The shape of the weight that parts of these shapes make; raises ValueError."""
    if fold == "weight_norm" and len(shapes) == 2 and _is_length(*shapes):
        return shapes[1]
    if fold == "spectral_norm" and len(shapes) == 3 and axes_of_vectors(*shapes):
        return shapes[0]
    raise ValueError(f"the shapes {', '.join(map(str, shapes))} are none of a {fold}")


def axes_of_vectors(weight: Shape, u: Shape, v: Shape) -> list[int]:
    """The axes of a weight that may be the rows of the matrix with these singular vectors."""
    return [
        axis
        for axis, size in enumerate(weight)
        if len(weight) > 1 and u == (size,) and v == (prod(weight) // max(1, size),)
    ]


def _with_suffixes(name: str, shapes: Mapping[str, Shape]) -> Parametrized | None:
    if name.endswith("_g"):
        base = name.removesuffix("_g")
        return _if_fitting(base, "weight_norm", (name, f"{base}_v"), shapes)
    if name.endswith("_orig"):
        base = name.removesuffix("_orig")
        return _if_fitting(base, "spectral_norm", (name, f"{base}_u", f"{base}_v"), shapes)
    return None


def _home(name: str) -> str | None:
    """The module of torch's that makes the weight, and holds what it is made of."""
    components = name.split(".")
    if "parametrizations" not in components[:-2]:
        return None
    return ".".join(components[: components.index("parametrizations") + 2])


def _in_module(
    name: str, shapes: Mapping[str, Shape], inside: Mapping[str, set[str]]
) -> Parametrized | None:
    home = _home(name)
    if home is None or home != name.rpartition(".")[0]:
        return None
    owner, _, base = home.rpartition("parametrizations.")
    attribute = name.removeprefix(f"{home}.")
    parts: tuple[str, ...]
    fold: Fold
    if attribute == "original0":
        fold, parts = "weight_norm", (name, f"{home}.original1")
    elif attribute == "original":
        fold, parts = "spectral_norm", (name, f"{home}.0._u", f"{home}.0._v")
    else:
        return None
    # Anything else beside them is a further parametrization, or another one.
    if inside[home] != set(parts):
        return None
    return _if_fitting(f"{owner}{base}", fold, parts, shapes)


def _if_fitting(
    name: str, fold: Fold, parts: tuple[str, ...], shapes: Mapping[str, Shape]
) -> Parametrized | None:
    if any(part not in shapes for part in parts):
        return None
    try:
        return Parametrized(name, fold, parts, folded_shape(fold, [shapes[p] for p in parts]))
    except ValueError:
        return None


def _is_length(length: Shape, direction: Shape) -> bool:
    """Whether one is of the norms over all axes of the other but one, or over all."""
    if not length:
        return bool(direction)
    if len(length) != len(direction):
        return False
    kept = [size for size in length if size != 1]
    return len(kept) <= 1 and all(a in (1, b) for a, b in zip(length, direction, strict=True))
