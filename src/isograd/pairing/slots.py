"""A network as a list of slots: the parameters that belong together, with their place.

A slot is what gets paired: the weight and bias of a layer, one layer of an RNN, a fused
projection, or a raw parameter on its own.  Pairing slots instead of single parameters keeps a
bias with its weight and lets statistics identify a norm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.pairing.conventions import (
    ALONE_BY_CONVENTION,
    CONVOLUTIONS,
    STATISTICS,
    canonical_component,
    family,
    place_of_attribute,
    slot_kind,
)
from isograd.pairing.parametrized import parametrized_in
from isograd.pairing.transforms import (
    Identity,
    Shape,
    Transform,
    Transpose,
    between_kernel_and_matrix,
    transform_between,
)

Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Slot:
    """Parameters that are paired together.

    path: components of the name, as written; key: the same by convention, unique on its side.
    parts: role -> parameters, several where parameters of the port were put together to meet a
    fused one; shapes: role -> shape of the whole.
    definition, execution: position in the order of definition and of first use.
    constant: a buffer that holds no statistics.
    beside: whether it is the length of a weight norm or a vector of a spectral norm.
    """

    path: Key
    key: Key
    kind: str
    library: bool
    parts: Mapping[str, tuple[ParameterInfo, ...]]
    shapes: Mapping[str, Shape]
    definition: int
    execution: int
    constant: bool = False
    beside: bool = False

    @property
    def main_role(self) -> str:
        """The role that decides what the slot is."""
        for role in ("weight", "weight_ih", "value"):
            if role in self.parts:
                return role
        return next(iter(self.parts))

    @property
    def is_composite(self) -> bool:
        """Whether a role consists of several parameters."""
        return any(len(parameters) > 1 for parameters in self.parts.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its parameters."""
        return tuple(info.name for parameters in self.parts.values() for info in parameters)


def slots_of(structure: Structure) -> list[Slot]:
    """All slots of a network, in the order of definition."""
    modules = {module.name: module for module in structure.modules}
    first_use = _first_uses(structure)
    grouped: dict[tuple[Key, bool], dict[str, ParameterInfo]] = {}
    owners: dict[tuple[Key, bool], ModuleInfo | None] = {}
    for info in structure.parameters:
        if info.attribute in ALONE_BY_CONVENTION:
            continue
        owner = modules.get(info.module)
        further, role = place_of_attribute(slot_kind(owner.kind) if owner else "", info.attribute)
        path = (*components(info.module), *further)
        constant = info.is_buffer and role not in STATISTICS and further != ()
        place = (path, constant)
        if role in grouped.get(place, {}):
            place, role = ((*components(info.module), info.attribute), constant), "value"
        grouped.setdefault(place, {})[role] = info
        owners[place] = owner
    keys = _unique_keys([place[0] for place in grouped], modules)
    beside = _beside_weights(structure)
    slots = []
    for definition, (place, parts) in enumerate(grouped.items()):
        owner = owners[place]
        slots.append(
            Slot(
                path=place[0],
                key=keys[definition],
                kind=_kind_of(owner, place[0], parts),
                library=owner is not None and owner.library,
                parts={role: (info,) for role, info in parts.items()},
                shapes={role: info.shape for role, info in parts.items()},
                definition=definition,
                execution=_use_of(next(iter(parts.values())).module, first_use),
                constant=place[1],
                beside=any(info.name in beside for info in parts.values()),
            )
        )
    return slots


def _beside_weights(structure: Structure) -> set[str]:
    """What scales a stored weight: it is no weight, bias or statistic, whatever its shape."""
    found = parametrized_in({info.name: info.shape for info in structure.parameters})
    lengths = {made.parts[0] for made in found if made.fold == "weight_norm"}
    return lengths | {p for made in found if made.fold == "spectral_norm" for p in made.parts[1:]}


def singles_of(slot: Slot) -> list[Slot]:
    """The parameters of a slot as slots of their own."""
    if len(slot.parts) == 1 and not slot.is_composite:
        return [slot]
    singles = []
    for role, parameters in slot.parts.items():
        for info in parameters:
            ending = (*components(info.name)[-2:],) if slot.is_composite else (role,)
            singles.append(
                replace(
                    slot,
                    path=(*slot.path, *ending),
                    key=(*slot.key, *ending),
                    parts={role: (info,)},
                    shapes={role: info.shape},
                )
            )
    return singles


def components(name: str) -> Key:
    """The components of a dotted name."""
    return tuple(name.split(".")) if name else ()


def enclosing(name: str) -> list[str]:
    """The module itself and all around it, the innermost first."""
    parts = components(name)
    return [".".join(parts[:depth]) for depth in range(len(parts), -1, -1)]


def modules_with_parameters(structure: Structure) -> set[str]:
    """The names of the modules that hold a parameter or buffer, themselves or further inside."""
    return {name for info in structure.parameters for name in enclosing(info.module)}


def role_transforms(
    reference: Slot, port: Slot, *, same_name: bool
) -> dict[tuple[str, str], Transform] | None:
    """Transforms of the roles that two slots share, or None where the slots cannot be one."""
    both_library = reference.library and port.library
    if both_library and family(reference.kind) != family(port.kind):
        return None
    return transforms_of_shapes(reference, port, same_name=same_name)


def transforms_of_shapes(
    reference: Slot, port: Slot, *, same_name: bool
) -> dict[tuple[str, str], Transform] | None:
    """The same for slots that may be of different families."""
    if _is_integer(reference) != _is_integer(port):
        return None
    if any(one.beside and _is_of_layer(other) for one, other in _both_ways(reference, port)):
        return None
    roles = [(role, role) for role in reference.parts if role in port.parts]
    if not roles and len(reference.parts) == len(port.parts) == 1:
        roles = [(next(iter(reference.parts)), next(iter(port.parts)))]
    if not roles or (reference.main_role, port.main_role) not in roles:
        return None
    found: dict[tuple[str, str], Transform] = {}
    for role, port_role in roles:
        transform = _transform(reference, port, (role, port_role), same_name)
        if transform is None:
            return None
        found[role, port_role] = transform
    return found


def _both_ways(reference: Slot, port: Slot) -> tuple[tuple[Slot, Slot], ...]:
    return (reference, port), (port, reference)


def _is_of_layer(slot: Slot) -> bool:
    return slot.library and slot.main_role != "value"


def _transform(
    reference: Slot, port: Slot, roles: tuple[str, str], same_name: bool
) -> Transform | None:
    shapes = reference.shapes[roles[0]], port.shapes[roles[1]]
    transform: Transform | None = None
    if reference.library or port.library:
        if _may_be_kernel(reference) and _may_be_matrix(port):
            transform = between_kernel_and_matrix(*shapes, kernel="reference")
        elif _may_be_matrix(reference) and _may_be_kernel(port):
            transform = between_kernel_and_matrix(*shapes, kernel="port")
    return transform or transform_between(
        *shapes,
        same_library_kind=reference.library and port.library and reference.kind == port.kind,
        same_name=same_name,
    )


def may_be_transposed(reference: Slot, port: Slot, role: str, transform: Transform) -> bool:
    """Whether a square matrix could be stored the other way by one of the two sides."""
    shape = reference.shapes[role]
    square = len(shape) == 2 and shape[0] == shape[1] != 1
    known = reference.library and port.library
    return square and isinstance(transform, Identity | Transpose) and not known


def _may_be_kernel(slot: Slot) -> bool:
    return not slot.library or slot.kind in CONVOLUTIONS


def _may_be_matrix(slot: Slot) -> bool:
    return not slot.library or slot.kind == "Linear"


def strict_signature(slot: Slot) -> tuple[object, ...]:
    """What slots that are the same for sure have in common."""
    kind = slot.kind if slot.kind != "Conv1d" else "Conv2d"
    return (
        kind if slot.library else "",
        tuple(sorted((role, _comparable(slot.kind, shape)) for role, shape in slot.shapes.items())),
        _is_integer(slot),
    )


def loose_signature(slot: Slot) -> tuple[object, ...]:
    """What slots that may be the same have in common: the sizes of the main parameter."""
    shape = slot.shapes[slot.main_role]
    return (tuple(sorted(size for size in shape if size != 1)), _is_integer(slot))


def matrix_signature(slot: Slot) -> tuple[object, ...]:
    """The same, of a kernel the sizes of the matrix that it multiplies patches by."""
    shape = slot.shapes[slot.main_role]
    if len(shape) < 3:
        return loose_signature(slot)
    return (tuple(sorted((shape[0], prod(shape[1:])))), _is_integer(slot))


def _comparable(kind: str, shape: Shape) -> Shape:
    if kind in ("Conv1d", "ConvTranspose1d") and len(shape) == 3:
        return (*shape[:2], 1, shape[2])
    return shape


def _is_integer(slot: Slot) -> bool:
    return slot.parts[slot.main_role][0].dtype.startswith(("int", "uint", "bool"))


def _kind_of(owner: ModuleInfo | None, path: Key, parts: Mapping[str, ParameterInfo]) -> str:
    if owner is None:
        return ""
    kind = slot_kind(owner.kind)
    if kind == "MultiheadAttention" and set(parts) <= {"weight", "bias"} and path:
        return "Linear"
    return kind


def _first_uses(structure: Structure) -> dict[str, int]:
    uses: dict[str, int] = {}
    for index, call in enumerate(structure.calls):
        uses.setdefault(call.module, index)
    return uses


def _use_of(module: str, first_use: Mapping[str, int]) -> int:
    while module not in first_use:
        if not module:
            return -1
        module = module.rpartition(".")[0]
    return first_use[module]


def _unique_keys(paths: list[Key], modules: Mapping[str, ModuleInfo]) -> list[Key]:
    keys = [_key_of(path, modules) for path in paths]
    counts = Counter(keys)
    return [key if counts[key] == 1 else path for key, path in zip(keys, paths, strict=True)]


def _key_of(path: Key, modules: Mapping[str, ModuleInfo]) -> Key:
    kept = []
    for position, component in enumerate(path):
        parent = modules.get(".".join(path[:position]))
        if component == "bn2d" and parent is not None and parent.kind == "BatchNorm3d":
            continue
        kept.append(canonical_component(component))
    return tuple(kept)


def by_key(slots: Iterable[Slot]) -> dict[Key, Slot]:
    """Slots by their key; a constant gives way to a parameter."""
    found: dict[Key, Slot] = {}
    for slot in slots:
        if slot.key not in found or found[slot.key].constant:
            found[slot.key] = slot
    return found
