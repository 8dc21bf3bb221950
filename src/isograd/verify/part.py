"""Which part of a verification runs: all of it, some stages, or one module with what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isograd.errors import UsageError
from isograd.model import Stage

if TYPE_CHECKING:
    from isograd.verify.session import Session

_NEEDS_LOSS = (Stage.LOSS, Stage.BACKWARD, Stage.UPDATE, Stage.TRAINING)
_NEEDS_OPTIMIZER = (Stage.UPDATE, Stage.TRAINING)
#: Stages that look at modules alone.
_OF_MODULES = (Stage.PARAMETERS, Stage.FORWARD, Stage.BACKWARD)


@dataclass(frozen=True)
class Part:
    """What of a verification runs.

    stages: with those that they need; empty for all.  module: the reference's name of the one
    module that is looked at, with those inside it; None for all.
    """

    stages: frozenset[Stage] = frozenset()
    module: str | None = None

    def has(self, stage: Stage) -> bool:
        """Whether a stage runs."""
        if self.module is not None and stage not in _OF_MODULES:
            return False
        return not self.stages or stage in self.stages

    def contains(self, module: str) -> bool:
        """Whether a module of the reference is looked at."""
        chosen = self.module
        return chosen is None or module == chosen or module.startswith(f"{chosen}.")

    @property
    def sentence(self) -> str:
        """What was left out, or nothing."""
        left_out = []
        if self.stages:
            names = ", ".join(stage.value for stage in Stage if stage in self.stages)
            left_out.append(f"only these stages ran: {names}")
        if self.module is not None:
            left_out.append(f"only {self.module or 'the network'} and its modules were compared")
        return "; ".join(left_out)


WHOLE = Part()


def part_of(stages: Iterable[str], module: str | None) -> Part:
    """The part that a person asks for; raises `UsageError` for an unknown or useless stage."""
    known = {stage.value: stage for stage in Stage}
    for name in stages:
        if name not in known:
            raise UsageError(f"there is no stage {name!r}", f"Use one of {', '.join(known)}.")
    chosen = {known[name] for name in stages}
    if module is not None and (others := sorted(s.value for s in chosen - set(_OF_MODULES))):
        raise UsageError(
            f"stage {others[0]} does not look at one module",
            "Leave out --module, or choose parameters, forward or backward.",
        )
    if chosen:
        chosen.add(Stage.PARAMETERS)
    if Stage.BACKWARD in chosen:
        chosen.add(Stage.FORWARD)
    return Part(frozenset(chosen), "" if module == "network" else module)


def why_skipped(session: Session, stage: Stage) -> str:
    """Why a stage does not run, or nothing; the stages before it have run."""
    case, part = session.case, session.part
    if stage in _NEEDS_LOSS and case.reference.loss is None:
        return "the case names no loss"
    if stage in _NEEDS_OPTIMIZER:
        if case.reference.optimizer is None:
            return "the case names no optimizer"
        if not any(p.trainable for p in session.reference_structure.parameters):
            return "the network has no parameters to train"
    if stage is Stage.INFERENCE and "eval" not in case.modes:
        return "the case asks for train mode only"
    if stage is Stage.COMPILED and case.compiled == "off":
        return 'the case says compiled = "off"'
    if stage is Stage.COMPILED and case.port.framework != "mindspore":
        return "the port is not of MindSpore"
    return "" if part.has(stage) else "not asked for"
