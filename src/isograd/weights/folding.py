"""Weights that a source stores as their parts, made whole where the loading network has one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor, TensorInfo, size_in_bytes
from isograd.checkpoints.dtypes import decoded
from isograd.errors import UsageError
from isograd.frameworks.base import Structure
from isograd.pairing.parametrized import Fold, Parametrized, axes_of_vectors, parametrized_in
from isograd.tensors import Array
from isograd.weights.casts import TARGETS, cast
from isograd.weights.model import Move

#: How much greater the right singular value is than one along another axis of a square weight.
_CLEARLY = 1.1
_ADVICE = (
    "Fold it before saving: torch.nn.utils.parametrize.remove_parametrizations, "
    "remove_weight_norm, remove_spectral_norm or prune.remove."
)


def with_folded(
    infos: list[TensorInfo], network: Structure
) -> tuple[list[TensorInfo], dict[str, Parametrized]]:
    """The tensors with whole weights where the network has no place for their parts.

    returns: the tensors, and by its name what each whole weight is made of.
    """
    dtypes = {info.name: info.dtype for info in infos}
    here = [
        made
        for made in parametrized_in({info.name: info.shape for info in infos})
        if len({dtypes[part] for part in made.parts}) == 1 and dtypes[made.parts[0]] in TARGETS
    ]
    there = parametrized_in({info.name: info.shape for info in network.parameters})
    same = {made.name for made in there}
    rest = [made for made in here if made.name not in same]
    if len(there) > len(here) - len(rest):
        return infos, {}  # the network keeps some under other names: which of them is not known
    first = {made.parts[0]: made for made in rest}
    parts = {part for made in rest for part in made.parts}
    found = []
    for info in infos:
        if info.name in first:
            made = first[info.name]
            size = size_in_bytes(info.dtype, made.shape)
            found.append(
                dataclasses.replace(
                    info, name=made.name, shape=made.shape, size_bytes=size, tied_to=None
                )
            )
        elif info.name not in parts:
            found.append(info)
    return found, {made.name: made for made in rest}


def unfolded(move: Move, made: dict[str, Parametrized]) -> Move:
    """The move from the tensors that the source has; raises UsageError where it has several."""
    whole = next((made[name] for name in move.source if name in made), None)
    if whole is None:
        return move
    if len(move.source) > 1:
        raise UsageError(
            f"{whole.parts[0]} is a part of a weight that is joined to {move.target[0]}",
            _ADVICE,
        )
    return dataclasses.replace(move, source=whole.parts, fold=whole.fold)


def folded(fold: Fold, parts: Sequence[RawTensor]) -> Array:
    """The bits of a weight in the dtype of its parts; raises ValueError where its axis is unclear.

    parts: bits as the file has them, in the order of `Parametrized.parts`.
    """
    arrays = [decoded(part.bits, part.dtype).values.astype(np.float64) for part in parts]
    with np.errstate(all="ignore"):
        weight = _of_length(*arrays) if fold == "weight_norm" else _over_norm(*arrays)
    made, _ = cast("", RawTensor(weight, "float64"), parts[0].dtype)
    return made.bits


_Numbers = NDArray[np.float64]


def _of_length(length: _Numbers, direction: _Numbers) -> _Numbers:
    axes = tuple(
        axis for axis in range(direction.ndim) if not length.ndim or length.shape[axis] == 1
    )
    norm: _Numbers = np.sqrt(np.sum(direction**2, axis=axes, keepdims=True))
    return direction * (length / norm)


def _over_norm(weight: _Numbers, u: _Numbers, v: _Numbers) -> _Numbers:
    """By the singular value along the axis for which u and v are its vectors: the greatest."""
    values = sorted(
        float(u @ np.moveaxis(weight, axis, 0).reshape(len(u), -1) @ v)
        for axis in axes_of_vectors(weight.shape, u.shape, v.shape)
    )
    *others, greatest = values
    if others and not (np.isclose(others[-1], greatest) or greatest > _CLEARLY * others[-1]):
        raise ValueError("along which axis the spectral norm was taken is not clear")
    return weight / greatest


def refuse_parts(moves: Sequence[Move], infos: Sequence[TensorInfo], network: Structure) -> None:
    """Raise UsageError where a layer's own weight would get what a weight is computed from."""
    here = _parts([(info.name, info.shape) for info in infos])
    there = _parts([(info.name, info.shape) for info in network.parameters])
    layers = {module.name for module in network.modules if module.library}
    for move in moves:
        part = next((name for name in move.source if name in here), None)
        taken = [n for n in move.target if n not in there and n.rpartition(".")[0] in layers]
        if part is not None and taken and move.fold is None:
            raise UsageError(
                f"{part} is what torch computes a weight from, and {taken[0]} is a whole weight",
                _ADVICE,
            )


def _parts(tensors: Sequence[tuple[str, tuple[int, ...]]]) -> set[str]:
    """The tensors of weights that are computed, also by what is not known."""
    known = {part for made in parametrized_in(dict(tensors)) for part in made.parts}
    named = {name for name, _ in tensors if "parametrizations" in name.split(".")[:-2]}
    names = {name for name, _ in tensors}
    bases = {name.removesuffix("_orig") for name in names if name.endswith("_orig")} - names
    beside = {name for name in names if name.rpartition("_")[0] in bases}
    return known | named | beside
