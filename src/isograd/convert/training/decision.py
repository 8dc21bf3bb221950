"""What is decided about a project's training loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from isograd.convert.facts import Facts
from isograd.convert.model import Finding
from isograd.convert.training.found import Found
from isograd.convert.training.recorded import is_recorded
from isograd.convert.training.rewrite import Rewritten


@dataclass
class Decision:
    """The files whose loops are written anew, by name; or why all loops stay as they are.

    records: whether gradients are recorded beside compiled steps.
    computed: the names of functions that compiled steps run.
    findings: of a project with compiled steps, why others of its code stay eager beside them.
    evaluates: whether networks may be compiled where they are evaluated, too.
    """

    files: dict[str, Rewritten] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    evaluates: bool = False
    records: bool = False
    computed: frozenset[str] = frozenset()

    @property
    def compiles(self) -> bool:
        """Whether the project's steps are compiled."""
        return bool(self.files)


def may_record(facts: Iterable[Facts], decision: Decision) -> bool:
    """Whether anything of a project may ask for recorded gradients."""
    if decision.compiles:
        return decision.records
    return any(
        takes_gradients(own)
        or any(is_recorded(api) for api in (*own.apis, *(m.api for m in own.members.values())))
        for own in facts
    )


def takes_gradients(facts: Facts) -> bool:
    """Whether a file calls a method `backward` of anything but self."""
    return "backward" in facts.called


def in_notebooks(files: Iterable[str]) -> Decision:
    """All loops stay as they are, because notebooks among the files take gradients."""
    found = Found()
    for file in files:
        found.say(file, None, "a notebook's cells are not written as one step")
    return Decision(findings=tuple(found.findings))
