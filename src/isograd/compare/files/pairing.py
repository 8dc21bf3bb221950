"""Which tensor of one file is which of the other: by a map, by name, by convention, by structure.

Each means takes only what those before it left.  Pairing never looks at values, so a permutation
cannot hide, and it never changes a shape but for the axis of length one that MindSpore puts into
the weight of a one-dimensional convolution.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isograd.checkpoints.base import TensorInfo
from isograd.errors import UsageError
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.pairing import Identity, pair_parameters
from isograd.pairing.conventions import (
    ALONE_BY_CONVENTION,
    canonical_component,
    place_of_attribute,
)

#: Above so many names without a partner, their structure is not looked at.
MOST_BY_STRUCTURE = 3000
_RANK = re.compile(r"(?:(?<=/)|^)rank(\d{1,9})/")
#: What wrappers put before every name.
_WRAPPERS = ("module.", "_orig_mod.", "network.", "_backbone.", "model.")


@dataclass(frozen=True)
class NamePair:
    """Two names that are one tensor."""

    reference: str
    other: str
    how: str


@dataclass(frozen=True)
class NamePairing:
    """All pairs in the reference's order, and what has no partner."""

    pairs: tuple[NamePair, ...]
    only_reference: tuple[str, ...]
    only_other: tuple[str, ...]
    alone_by_convention: tuple[str, ...]
    notes: tuple[str, ...] = ()


def pair_names(
    reference: Sequence[TensorInfo],
    other: Sequence[TensorInfo],
    renames: Mapping[str, str] | None = None,
) -> NamePairing:
    """Pair two sets of tensors; raises UsageError for a map that names what is not there."""
    mine = {info.name: info for info in reference}
    its = {info.name: info for info in other}
    partners: dict[str, tuple[str, str]] = {}
    for name, partner in (renames or {}).items():
        _require(name in mine, name, "first")
        _require(partner in its, partner, "second")
        partners[name] = (partner, "map")
    taken = {partner for partner, _ in partners.values()}
    if len(taken) != len(partners):
        raise UsageError("the map gives one tensor to two", "Name each tensor once.")
    for name in mine:
        if name in its and name not in partners and name not in taken:
            partners[name] = (name, "name")
            taken.add(name)
    for how in (_by_convention, _by_structure):
        left = [info for info in reference if info.name not in partners]
        right = [info for info in other if info.name not in taken]
        if not left or not right:
            break
        for name, partner in how(left, right).items():
            partners[name] = (partner, how.__name__.removeprefix("_by_"))
            taken.add(partner)
    return _answer(mine, its, partners, taken)


def pair_ranks(infos: Sequence[TensorInfo]) -> NamePairing:
    """Pair every rank of one run with the lowest; raises UsageError where there are not two.

    Of a run with steps, ranks are paired within each step.
    """
    runs: dict[str, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for info in infos:
        found = _RANK.search(info.name)
        if found:
            run, rank = info.name[: found.start()], int(found[1])
            runs[run][rank][info.name[found.end() :]] = info.name
    pairs, only_first, only_other = [], [], []
    for ranks in runs.values():
        lowest, *rest = (ranks[rank] for rank in sorted(ranks))
        for names in rest:
            pairs += [
                NamePair(first, names[plain], "rank")
                for plain, first in lowest.items()
                if plain in names
            ]
            only_first += [first for plain, first in lowest.items() if plain not in names]
            only_other += [name for plain, name in names.items() if plain not in lowest]
    if not pairs:
        raise UsageError(
            "no tensor stands in two ranks of one run",
            "Name a folder with rank_0, rank_1, … to compare ranks.",
        )
    return NamePairing(tuple(pairs), tuple(only_first), tuple(only_other), ())


def _answer(
    mine: Mapping[str, TensorInfo],
    its: Mapping[str, TensorInfo],
    partners: Mapping[str, tuple[str, str]],
    taken: set[str],
) -> NamePairing:
    pairs = tuple(NamePair(name, *partners[name]) for name in mine if name in partners)
    left, tied = _without_ties(mine, set(partners))
    right, other_tied = _without_ties(its, taken)
    alone = tuple(name for name in (*left, *right) if _attribute(name) in ALONE_BY_CONVENTION)
    by_structure = sum(pair.how == "structure" for pair in pairs)
    notes: tuple[str, ...] = ()
    if by_structure:
        notes = (
            f"{by_structure:,} pairs stand on shape and position alone, because their names do not "
            "tell; give a map with --map to be sure",
        )
    same = (*tied, *other_tied)
    if same:
        notes += (
            f"{', '.join(same[:3])}{' …' if len(same) > 3 else ''}: the tensor is compared under "
            "its other name",
        )
    return NamePairing(
        pairs=pairs,
        only_reference=tuple(name for name in left if name not in alone),
        only_other=tuple(name for name in right if name not in alone),
        alone_by_convention=alone,
        notes=notes,
    )


def _without_ties(infos: Mapping[str, TensorInfo], paired: set[str]) -> tuple[list[str], list[str]]:
    """The names without a partner, and those whose tensor has one under another name."""
    held = {infos[name].tied_to or name for name in paired}
    left = [name for name in infos if name not in paired]
    tied = [name for name in left if (infos[name].tied_to or name) in held]
    return [name for name in left if name not in tied], tied


def _require(is_there: bool, name: str, side: str) -> None:
    if not is_there:
        raise UsageError(
            f"the map names {name!r}, which the {side} set does not have",
            "Use names as `isograd params` lists them.",
        )


def _by_convention(left: Sequence[TensorInfo], right: Sequence[TensorInfo]) -> dict[str, str]:
    """Names that both frameworks' conventions make one, where that is one to one."""
    its = _by_key(right)
    found = {}
    for key, infos in _by_key(left).items():
        partners = its.get(key, [])
        if len(infos) == len(partners) == 1 and shapes_agree(infos[0], partners[0]):
            found[infos[0].name] = partners[0].name
    return found


def _by_key(infos: Iterable[TensorInfo]) -> dict[tuple[str, ...], list[TensorInfo]]:
    found: dict[tuple[str, ...], list[TensorInfo]] = defaultdict(list)
    for info in infos:
        found[_key(info.name)].append(info)
    return found


def _key(name: str) -> tuple[str, ...]:
    for wrapper in _WRAPPERS:
        name = name.removeprefix(wrapper)
    *path, attribute = name.replace("/", ".").split(".")
    further, role = place_of_attribute("", attribute)
    return (*(canonical_component(part) for part in (*path, *further)), role)


def _attribute(name: str) -> str:
    return name.replace("/", ".").rsplit(".", 1)[-1]


def _by_structure(left: Sequence[TensorInfo], right: Sequence[TensorInfo]) -> dict[str, str]:
    """What the pairing of networks makes of names, shapes and order; whole tensors only."""
    if max(len(left), len(right)) > MOST_BY_STRUCTURE:
        return {}
    if not all("." in info.name for info in (*left, *right)):
        return {}
    pairing = pair_parameters(_structure(left, "torch"), _structure(right, "mindspore"))
    shapes = {info.name: info.shape for info in left}
    other_shapes = {info.name: info.shape for info in right}
    return {
        pair.reference[0]: pair.port[0]
        for pair in pairing.pairs
        if len(pair.reference) == len(pair.port) == 1
        and isinstance(pair.transform, Identity)
        and shapes[pair.reference[0]] == other_shapes[pair.port[0]]
        and not pair.ambiguous_with
    }


def _structure(infos: Sequence[TensorInfo], framework: str) -> Structure:
    parameters = []
    modules = {"": ModuleInfo("", "Module", False)}
    for info in infos:
        module, _, attribute = info.name.rpartition(".")
        parts = module.split(".")
        for depth in range(1, len(parts) + 1):
            name = ".".join(parts[:depth])
            modules.setdefault(name, ModuleInfo(name, "Module", False))
        trainable = info.trainable is not False
        parameters.append(
            ParameterInfo(info.name, module, attribute, info.shape, info.dtype, trainable)
        )
    return Structure(framework, tuple(modules.values()), tuple(parameters))


def shapes_agree(reference: TensorInfo, other: TensorInfo) -> bool:
    """Whether two tensors have one shape, by the two frameworks' conventions."""
    return reference.shape == other.shape or is_one_dimensional_kernel(reference, other)


def is_one_dimensional_kernel(reference: TensorInfo, other: TensorInfo) -> bool:
    """Whether both are the weight of a one-dimensional convolution, of either framework."""
    short, long = sorted((reference.shape, other.shape), key=len)
    if len(short) != 3 or len(long) != 4 or long != (*short[:2], 1, short[2]):
        return False
    roles = {place_of_attribute("", _attribute(info.name))[1] for info in (reference, other)}
    return roles == {"weight"}
