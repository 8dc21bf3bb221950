"""Which tensor of one checkpoint is which of another, and how far each moved between two steps."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.checkpoints.base import TensorSource
from isograd.compare.pairing import ParameterPairing, pair_parameters
from isograd.weights.health import LARGE_CHANGE, SMALL_CHANGE, Change, Issue, change_of
from isograd.weights.inventory import Inventory, take_inventory
from isograd.weights.structure import structure_of


@dataclass(frozen=True)
class ParamsReport:
    """One inventory, or two with their correspondence.

    changes: of tensors with the same name, shape and dtype; only where all names are the same.
    """

    first: Inventory
    second: Inventory | None = None
    pairing: ParameterPairing | None = None
    changes: tuple[Change, ...] = ()
    change_issues: tuple[Issue, ...] = ()

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Everything that was found, what needs action first."""
        found = [*self.first.issues, *(self.second.issues if self.second else ())]
        return tuple(
            sorted((*found, *self.change_issues), key=lambda issue: not issue.needs_action)
        )

    @property
    def needs_action(self) -> bool:
        """Whether a person must look at something."""
        pairing = self.pairing
        return any(issue.needs_action for issue in self.issues) or (
            pairing is not None
            and bool(
                pairing.unpaired_reference
                or pairing.unpaired_port
                or pairing.shape_conflicts
                or pairing.ambiguous
            )
        )


def report_of(
    first: TensorSource, second: TensorSource | None = None, *, read: bool = True
) -> ParamsReport:
    """Take the inventory of one or two sources, and pair them."""
    inventory = take_inventory(first, read=read)
    if second is None:
        return ParamsReport(inventory)
    pairing = pair_parameters(structure_of(first, first.kind), structure_of(second, second.kind))
    changes = _changes(first, second) if read else ()
    return ParamsReport(
        inventory,
        take_inventory(second, read=read),
        pairing,
        changes,
        tuple(_change_issues(changes)),
    )


def _changes(first: TensorSource, second: TensorSource) -> tuple[Change, ...]:
    if set(first.names()) != set(second.names()):
        return ()
    found: list[Change] = []
    for info in first:
        other = second.info(info.name)
        if (info.dtype, info.shape) == (other.dtype, other.shape) and info.size_bytes:
            found.append(change_of(info.name, first.raw(info.name), second.raw(info.name)))
            first.forget()
            second.forget()
    return tuple(found)


def _change_issues(changes: tuple[Change, ...]) -> list[Issue]:
    found: list[Issue] = []
    for change in changes:
        if change.is_unchanged:
            found.append(Issue("params.unchanged", change.name, "did not change between the two"))
        elif change.ratio > LARGE_CHANGE:
            message = f"changed by {change.ratio:.2g} of its mean size, more than {LARGE_CHANGE}"
            found.append(Issue("params.change_large", change.name, message))
        elif change.ratio < SMALL_CHANGE:
            message = f"changed by only {change.ratio:.2g} of its mean size"
            found.append(Issue("params.change_small", change.name, message))
    return found
