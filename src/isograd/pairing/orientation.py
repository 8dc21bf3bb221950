"""Which way a square matrix of a user's own module is stored: as its neighbours are.

The shape of a square matrix does not tell, but a port that stores its other matrices transposed
stores this one so too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from isograd.frameworks.base import Structure
from isograd.pairing.names import SlotPair
from isograd.pairing.slots import may_be_transposed
from isograd.pairing.transforms import Chain, Identity, Transform, Transpose


def oriented(pairs: Sequence[SlotPair], reference: Structure, port: Structure) -> list[SlotPair]:
    """The pairs, those of square matrices transposed where most others of their owner are."""
    kinds = {module.name: module.kind for module in reference.modules}
    port_kinds = {module.name: module.kind for module in port.modules}
    votes: defaultdict[tuple[str, ...], Counter[bool]] = defaultdict(Counter)
    for pair in pairs:
        transposed = _vote(pair)
        if transposed is not None:
            for place in _places(pair, kinds, port_kinds):
                votes[place][transposed] += 1
    return [_turned(pair, votes, _places(pair, kinds, port_kinds)) for pair in pairs]


def _places(
    pair: SlotPair, kinds: dict[str, str], port_kinds: dict[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Whose habits count: first those of the owner, then those of its class."""
    slot, side = (pair.reference, "reference") if pair.port.library else (pair.port, "port")
    owner = slot.parts[slot.main_role][0].module
    kind = (kinds if side == "reference" else port_kinds).get(owner, "")
    return (side, "module", owner), (side, "class", kind)


def _vote(pair: SlotPair) -> bool | None:
    """Whether the pair shows a matrix to be stored transposed; None where it shows nothing."""
    if not _is_of_linear_maps(pair):
        return None
    roles = pair.reference.main_role, pair.port.main_role
    shape = pair.reference.shapes[roles[0]]
    transform = pair.transforms.get(roles)
    if transform is None or shape[0] == shape[-1] or 1 in shape:
        return None
    return _is_transposed(transform)


def _is_transposed(transform: Transform) -> bool | None:
    if isinstance(transform, Chain):
        return any(_is_transposed(step) for step in transform.steps)
    if isinstance(transform, Transpose):
        return transform.axes == (1, 0)
    return False


def _is_of_linear_maps(pair: SlotPair) -> bool:
    """Whether one side has matrices of its own and no layer says that they are something else."""
    slots = pair.reference, pair.port
    if all(slot.library for slot in slots):
        return False
    return all(len(slot.shapes[slot.main_role]) > 1 for slot in slots) and not any(
        slot.library and slot.kind == "Embedding" for slot in slots
    )


def _turned(
    pair: SlotPair,
    votes: dict[tuple[str, ...], Counter[bool]],
    places: Sequence[tuple[str, ...]],
) -> SlotPair:
    roles = pair.reference.main_role, pair.port.main_role
    transform = pair.transforms.get(roles)
    if not isinstance(transform, Identity) or not _is_of_linear_maps(pair):
        return pair
    if not may_be_transposed(pair.reference, pair.port, roles[0], transform):
        return pair
    told = next((votes[place] for place in places if votes.get(place)), None)
    if told is None or told[True] <= told[False]:
        return pair
    return replace(pair, transforms={**pair.transforms, roles: Transpose((1, 0))})
