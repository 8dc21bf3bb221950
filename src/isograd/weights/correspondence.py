"""Which tensor of one checkpoint is which of another, and how far each moved between two steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isograd.checkpoints.base import TensorSource
from isograd.checkpoints.parts import with_parts
from isograd.frameworks.base import Structure
from isograd.pairing import ParameterPairing
from isograd.report.base import Report
from isograd.weights.guesses import paired_by_guess
from isograd.weights.health import LARGE_CHANGE, SMALL_CHANGE, Change, Issue, change_of
from isograd.weights.inventory import Inventory, take_inventory
from isograd.weights.structure import framework_of, structure_of

_Listener = Callable[[int, int], None]
#: Share of the names that two states of one training have in common.
_MOSTLY_THE_SAME = 0.5


@dataclass(frozen=True)
class ParamsReport(Report):
    """One inventory, or two with their correspondence.

    changes: of tensors with the same name, shape and dtype, where most names are the same.
    """

    first: Inventory
    second: Inventory | None = None
    pairing: ParameterPairing | None = None
    changes: tuple[Change, ...] = ()
    change_issues: tuple[Issue, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.weights.params_data import report_value

        return report_value(self)

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
    first: TensorSource,
    second: TensorSource | None = None,
    *,
    read: bool = True,
    listener: _Listener = lambda done, total: None,
) -> ParamsReport:
    """Take the inventory of one or two sources, and pair their networks.

    listener: gets the bytes that are done and their total.
    """
    count = _counter(first, second, listener)
    inventory = take_inventory(first, read=read, listener=count)
    if second is None:
        return ParamsReport(inventory)
    other = take_inventory(second, read=read, listener=count)
    pairing = paired_by_guess(_network(first), _network(second))
    changes = _changes(first, second, count) if read else ()
    return ParamsReport(inventory, other, pairing, changes, tuple(_change_issues(changes)))


def _network(source: TensorSource) -> Structure:
    """The network of a source, without what lies beside it."""
    infos = [info for info in with_parts(source) if not info.part]
    return structure_of(infos, source.kind)


def _counter(
    first: TensorSource, second: TensorSource | None, listener: _Listener
) -> Callable[[int], None]:
    total = sum(info.size_bytes for source in (first, second) if source for info in source)
    total *= 1 if second is None else 2
    done = 0

    def count(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        listener(done, total)

    return count


def _changes(
    first: TensorSource, second: TensorSource, count: Callable[[int], None]
) -> tuple[Change, ...]:
    if framework_of(first.names(), first.kind) != framework_of(second.names(), second.kind):
        return ()  # a conversion, no later state of the same training
    shared = [info for info in first if info.name in second]
    if len(shared) < _MOSTLY_THE_SAME * max(len(first), len(second)):
        return ()
    found: list[Change] = []
    for info in shared:
        other = second.info(info.name)
        if (info.dtype, info.shape) == (other.dtype, other.shape) and info.size_bytes:
            found.append(change_of(info.name, first.raw(info.name), second.raw(info.name)))
            first.forget()
            second.forget()
            count(2 * info.size_bytes)
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
