"""Explicit renames of a case: parameters or whole modules, reference name to port name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from isograd.errors import CaseError
from isograd.frameworks.base import Structure
from isograd.pairing.slots import Slot


def check_renames(
    rename: Mapping[str, str], reference: Structure, port: Structure
) -> dict[str, str]:
    """The renames of single parameters; a renamed module covers all that it holds alike."""
    for name in rename:
        _check_known(name, reference, "reference")
    for name in rename.values():
        _check_known(name, port, "port")
    parameters = {info.name for info in reference.parameters}
    port_parameters = {info.name for info in port.parameters}
    found: dict[str, str] = {}
    for name, partner in rename.items():
        if (name in parameters) != (partner in port_parameters):
            raise CaseError(
                f'rename of "{name}" to "{partner}" joins a parameter with a module',
                "Rename parameters to parameters and modules to modules.",
            )
        if name in parameters:
            found[name] = partner
    _check_once(found.values())
    return found


def module_renames(
    rename: Mapping[str, str], reference: Structure, slots: list[Slot], port_slots: list[Slot]
) -> list[tuple[Slot, Slot]]:
    """Slots that a renamed module holds at the same place on both sides."""
    parameters = {info.name for info in reference.parameters}
    port_by_key = {slot.key: slot for slot in port_slots}
    found: dict[int, tuple[Slot, Slot]] = {}
    modules = sorted(
        ((name, partner) for name, partner in rename.items() if name not in parameters),
        key=lambda renamed: len(renamed[0]),
    )
    for name, partner in modules:
        port_keys = _key_below(partner, port_slots)
        for slot in slots:
            place = _place_below(name, slot)
            if place is None or port_keys is None:
                continue
            match = port_by_key.get((*port_keys, *place))
            if match is not None:
                found[id(slot)] = (slot, match)
    return list(found.values())


def _place_below(module: str, slot: Slot) -> tuple[str, ...] | None:
    path = tuple(module.split("."))
    if slot.path[: len(path)] != path:
        return None
    return slot.key[len(path) :]


def _key_below(module: str, slots: Iterable[Slot]) -> tuple[str, ...] | None:
    path = tuple(module.split("."))
    for slot in slots:
        if slot.path[: len(path)] == path:
            place = _place_below(module, slot)
            if place is not None:
                return slot.key[: len(slot.key) - len(place)]
    return None


def _check_known(name: str, structure: Structure, side: str) -> None:
    known = [info.name for info in structure.parameters]
    known += [module.name for module in structure.modules if module.name]
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"Did you mean {', '.join(close)}?" if close else "No name there is close to it."
    raise CaseError(f'rename names "{name}", which the {side} does not have', hint)


def _check_once(partners: Iterable[str]) -> None:
    seen: set[str] = set()
    for partner in partners:
        if partner in seen:
            raise CaseError(
                f'rename gives "{partner}" of the port to two parameters of the reference',
                "Give each parameter of the port one partner.",
            )
        seen.add(partner)
