"""A checkpoint paired with a network: where a guessed kind keeps two apart, the other is tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from isograd.frameworks.base import Structure
from isograd.pairing import ParameterPairing, pair_parameters

#: What a matrix without a bias may be, by its file alone.
_EITHER = {"Linear": "Embedding", "Embedding": "Linear"}


def paired_by_guess(
    reference: Structure, port: Structure, *, port_is_known: bool = False
) -> ParameterPairing:
    """Pair two networks of which the kinds of layers are guessed, or the first's only."""
    found = pair_parameters(reference, port)
    if found.unpaired_reference and found.unpaired_port:
        sides = [(_otherwise(reference, found.unpaired_reference), port)]
        if not port_is_known:
            sides.append((reference, _otherwise(port, found.unpaired_port)))
        found = min([found, *(pair_parameters(*side) for side in sides)], key=_left)
    return found


def _left(found: ParameterPairing) -> int:
    return len(found.unpaired_reference) + len(found.unpaired_port)


def _otherwise(structure: Structure, names: Iterable[str]) -> Structure:
    """The network with the other kind for the matrices of these names that are alone."""
    wanted, held = set(names), dict[str, list[str]]()
    for info in structure.parameters:
        held.setdefault(info.module, []).append(info.name)
    alone = {
        info.module
        for info in structure.parameters
        if info.name in wanted
        and (info.attribute, len(info.shape)) == ("weight", 2)
        and held[info.module] == [info.name]
    }
    modules = tuple(
        replace(module, kind=_EITHER.get(module.kind, module.kind))
        if module.name in alone
        else module
        for module in structure.modules
    )
    return replace(structure, modules=modules)
