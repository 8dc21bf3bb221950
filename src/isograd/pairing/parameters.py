"""Pairing of parameters: by rename, by name, by structure, then by value.

Each means takes only what those before it left, and the surest comes first.  Where the order of
definition and the order of execution would pair differently, and names do not tell, the pair is
listed as ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.pairing.by_value import pair_by_value, settled_by_value
from isograd.pairing.conventions import ALONE_BY_CONVENTION, STATISTICS, place_of_attribute
from isograd.pairing.fused import with_fused_met
from isograd.pairing.names import (
    NumberedNames,
    SlotPair,
    pair_by_name,
    pair_parts_by_name,
    without_wrappers,
)
from isograd.pairing.orientation import oriented
from isograd.pairing.renames import check_renames, module_renames
from isograd.pairing.results import How, ParameterPair, ParameterPairing, Values
from isograd.pairing.slots import (
    Slot,
    loose_signature,
    matrix_signature,
    may_be_transposed,
    role_transforms,
    singles_of,
    slots_of,
    strict_signature,
)
from isograd.pairing.structure import (
    Order,
    Signature,
    pair_by_structure,
    pair_last_ones,
)
from isograd.pairing.ties import Ties, with_ties
from isograd.pairing.transforms import (
    Concatenate,
    Shape,
    Split,
    Transform,
    chain,
    transform_between,
)

_NO_RENAME: Mapping[str, str] = {}


def pair_parameters(
    reference: Structure,
    port: Structure,
    *,
    rename: Mapping[str, str] = _NO_RENAME,
    values: Values | None = None,
) -> ParameterPairing:
    """Pair the parameters and buffers of two networks; raises CaseError for a wrong rename."""
    here, there = slots_of(reference), slots_of(port)
    explicit = check_renames(rename, reference, port)
    renamed, conflicts = _pair_renamed(explicit, reference, port)
    here = _without_parameters(here, set(explicit))
    there = _without_parameters(there, set(explicit.values()))
    named = _by_module_rename(rename, reference, here, there)
    here, there = _left(here, there, named)
    here, there = without_wrappers(here, there)
    trust = NumberedNames(here, there)
    named += pair_by_name(here, there)
    rest = _left(here, there, named)
    parts = pair_parts_by_name(*rest)
    named += parts
    rest = (
        _without_parameters(rest[0], {name for pair in parts for name in pair.reference.names}),
        _without_parameters(rest[1], {name for pair in parts for name in pair.port.names}),
    )

    by_execution = bool(reference.calls) and bool(port.calls)
    found = _by_structure(*rest, trust, "execution" if by_execution else "definition")
    pairs = [*renamed, *_parameter_pairs(oriented([*named, *found], reference, port))]
    if by_execution:
        other = _by_structure(*rest, trust, "definition")
        pairs = _with_doubts(pairs, _parameter_pairs(other))
    conflicts += _conflicts(*_left(here, there, [*named, *found]), trust)
    return _Answer(reference, port, pairs, conflicts).settle(values)


def _pair_renamed(
    explicit: Mapping[str, str], reference: Structure, port: Structure
) -> tuple[list[ParameterPair], list[tuple[str, str]]]:
    infos = {info.name: info for info in reference.parameters}
    port_infos = {info.name: info for info in port.parameters}
    pairs, conflicts = [], []
    for name, partner in explicit.items():
        transform = transform_between(
            infos[name].shape, port_infos[partner].shape, same_library_kind=False, same_name=True
        )
        if transform is None:
            conflicts.append((name, partner))
        else:
            pairs.append(ParameterPair((name,), (partner,), transform, "rename"))
    return pairs, conflicts


def _without_parameters(slots: Sequence[Slot], names: set[str]) -> list[Slot]:
    kept = []
    for slot in slots:
        if not names.intersection(slot.names):
            kept.append(slot)
            continue
        roles = [role for role, infos in slot.parts.items() if infos[0].name not in names]
        if roles:
            kept.append(
                replace(
                    slot,
                    parts={role: slot.parts[role] for role in roles},
                    shapes={role: slot.shapes[role] for role in roles},
                )
            )
    return kept


def _by_module_rename(
    rename: Mapping[str, str], reference: Structure, here: list[Slot], there: list[Slot]
) -> list[SlotPair]:
    pairs = []
    for slot, partner in module_renames(rename, reference, here, there):
        transforms = role_transforms(slot, partner, same_name=True)
        if transforms is not None:
            pairs.append(SlotPair(slot, partner, "rename", transforms))
    return pairs


def _left(
    here: Sequence[Slot], there: Sequence[Slot], pairs: Sequence[SlotPair]
) -> tuple[list[Slot], list[Slot]]:
    """The slots of which no parameter is paired yet."""
    taken = {name for pair in pairs for name in pair.reference.names}
    port_taken = {name for pair in pairs for name in pair.port.names}
    return (
        [slot for slot in here if not taken.intersection(slot.names)],
        [slot for slot in there if not port_taken.intersection(slot.names)],
    )


@dataclass(frozen=True)
class _Pass:
    """One way to look at what is left; every pass is less strict than the one before."""

    signature: Signature
    view: Callable[[list[Slot], list[Slot]], tuple[list[Slot], list[Slot]]]


def _learned(here: list[Slot], there: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    return with_fused_met(
        [slot for slot in here if not slot.constant], [slot for slot in there if not slot.constant]
    )


def _single(here: list[Slot], there: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    return (
        [single for slot in here if not slot.constant for single in singles_of(slot)],
        [single for slot in there if not slot.constant for single in singles_of(slot)],
    )


def _constant(here: list[Slot], there: list[Slot]) -> tuple[list[Slot], list[Slot]]:
    return (
        [slot for slot in here if slot.constant],
        [
            slot
            for slot in there
            if slot.constant or not any(part[0].trainable for part in slot.parts.values())
        ],
    )


_PASSES = (
    _Pass(strict_signature, _learned),
    _Pass(loose_signature, _learned),
    _Pass(matrix_signature, _learned),
    _Pass(loose_signature, _single),
    _Pass(loose_signature, _constant),
)


def _by_structure(
    here: list[Slot], there: list[Slot], trust: NumberedNames, order: Order
) -> list[SlotPair]:
    pairs: list[SlotPair] = []
    for step in _PASSES:
        left, port_left = step.view(*_left(here, there, pairs))
        if left and port_left:
            pairs += pair_by_structure(
                left, port_left, trust=trust, signature=step.signature, order=order
            )
    singles, port_singles = _single(here, there)
    return pairs + pair_last_ones(*_left(singles, port_singles, pairs))


def _parameter_pairs(slot_pairs: Sequence[SlotPair]) -> list[ParameterPair]:
    pairs = []
    for found in slot_pairs:
        for (role, port_role), transform in found.transforms.items():
            mine, its = found.reference.parts[role], found.port.parts[port_role]
            pairs.append(
                ParameterPair(
                    reference=tuple(info.name for info in mine),
                    port=tuple(info.name for info in its),
                    transform=_with_parts(
                        (mine, found.reference.shapes[role]),
                        (its, found.port.shapes[port_role]),
                        transform,
                    ),
                    how=_how(found.how),
                    may_be_transposed=may_be_transposed(
                        found.reference, found.port, role, transform
                    ),
                )
            )
    return pairs


def _with_parts(
    reference: tuple[Sequence[ParameterInfo], Shape],
    port: tuple[Sequence[ParameterInfo], Shape],
    transform: Transform,
) -> Transform:
    """The transform of the wholes, with what makes them of their parts."""
    if len(reference[0]) > 1:
        return chain(Concatenate(*_axis_and_sizes(*reference)), transform)
    if len(port[0]) > 1:
        return chain(transform, Split(*_axis_and_sizes(*port)))
    return transform


def _axis_and_sizes(parts: Sequence[ParameterInfo], whole: Shape) -> tuple[int, tuple[int, ...]]:
    axis = next(axis for axis, size in enumerate(whole) if size != parts[0].shape[axis])
    return axis, tuple(info.shape[axis] for info in parts)


def _how(how: str) -> How:
    return "rename" if how == "rename" else "name" if how == "name" else "structure"


def _with_doubts(
    pairs: Sequence[ParameterPair], others: Sequence[ParameterPair]
) -> list[ParameterPair]:
    """The pairs; those that the other order would pair differently name what it would take."""
    partners = {pair.reference: pair.port for pair in others}
    port_partners = {pair.port: pair.reference for pair in others}
    by_reference = {pair.reference: pair.port for pair in pairs}
    doubtful = []
    for pair in pairs:
        alternatives: set[str] = set()
        if pair.how == "structure":
            alternatives.update(partners.get(pair.reference, pair.port))
            exchanged = by_reference.get(port_partners.get(pair.port, pair.reference), pair.port)
            alternatives.update(exchanged)
        doubtful.append(replace(pair, ambiguous_with=tuple(sorted(alternatives - set(pair.port)))))
    return doubtful


def _conflicts(
    here: Sequence[Slot], there: Sequence[Slot], trust: NumberedNames
) -> list[tuple[str, str]]:
    port_by_key = {slot.key: slot for slot in there}
    found = []
    for slot in here:
        partner = port_by_key.get(slot.key)
        if partner is None or not trust.trusts(slot.key):
            continue
        for role, infos in slot.parts.items():
            if role in partner.parts and slot.shapes[role] != partner.shapes[role]:
                found.append((infos[0].name, partner.parts[role][0].name))
    return found


class _Answer:
    """Puts pairs, ties and what is left into the answer."""

    def __init__(
        self,
        reference: Structure,
        port: Structure,
        pairs: list[ParameterPair],
        conflicts: list[tuple[str, str]],
    ) -> None:
        self._reference, self._port = reference, port
        self._ties, self._port_ties = Ties(reference.parameters), Ties(port.parameters)
        self._pairs = with_ties(pairs, self._ties, self._port_ties)
        self._conflicts = conflicts

    def settle(self, values: Values | None) -> ParameterPairing:
        """The answer, with doubts settled and gaps closed by values where there are any."""
        modules = {module.name: module for module in self._reference.modules}
        port_modules = {module.name: module for module in self._port.modules}
        if values is not None:
            self._pairs = settled_by_value(self._pairs, values)
            self._pairs += pair_by_value(self._unpaired(), self._port_unpaired(), values)
        unpaired, port_unpaired = self._unpaired(), self._port_unpaired()
        derived = [info for info in unpaired if info.is_buffer and not _is_kept(info, modules)]
        port_derived = [
            info
            for info in port_unpaired
            if (info.is_buffer or not info.trainable) and not _is_kept(info, port_modules)
        ]
        names = {info.name: index for index, info in enumerate(self._reference.parameters)}
        return ParameterPairing(
            pairs=tuple(sorted(self._pairs, key=lambda pair: names[pair.reference[0]])),
            unpaired_reference=_names(unpaired, derived),
            unpaired_port=_names(port_unpaired, port_derived),
            unpaired_buffers_reference=_names(derived),
            unpaired_buffers_port=_names(port_derived),
            shape_conflicts=tuple(self._conflicts),
            alone_by_convention=tuple(
                info.name
                for info in (*self._reference.parameters, *self._port.parameters)
                if info.attribute in ALONE_BY_CONVENTION
            ),
        )

    def _unpaired(self) -> list[ParameterInfo]:
        paired = {name for pair in self._pairs for name in pair.reference}
        return _without_partner(self._reference, self._ties, paired)

    def _port_unpaired(self) -> list[ParameterInfo]:
        paired = {name for pair in self._pairs for name in pair.port}
        return _without_partner(self._port, self._port_ties, paired)


def _without_partner(structure: Structure, ties: Ties, paired: set[str]) -> list[ParameterInfo]:
    """The tensors, by their first names, that no pair holds."""
    return [
        info
        for info in structure.parameters
        if info.name not in paired
        and not ties.is_alias(info.name)
        and info.attribute not in ALONE_BY_CONVENTION
    ]


def _names(
    infos: Sequence[ParameterInfo], without: Sequence[ParameterInfo] = ()
) -> tuple[str, ...]:
    left_out = {info.name for info in without}
    return tuple(info.name for info in infos if info.name not in left_out)


def _is_kept(info: ParameterInfo, modules: Mapping[str, ModuleInfo]) -> bool:
    """Whether training changes it though it is not trained: the statistics of a norm.

    MindSpore's norm has statistics even where `use_batch_statistics=True` keeps it from using them.
    """
    module = modules.get(info.module)
    if module is not None and module.arguments.get("use_batch_statistics") is True:
        return False
    place, role = place_of_attribute(module.kind if module else "", info.attribute)
    return not place and role in STATISTICS
