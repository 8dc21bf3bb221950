"""What is found of a project's training loops: their steps, and why loops stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Set
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.model import Finding, Level
from isograd.convert.training.joints import Joint
from isograd.convert.training.model import EagerError, StepPlan
from isograd.convert.training.regions import Regions

_CODE = "eager-training"
_ADVICE = "It runs eagerly, as written; write one step as a function to have it compiled."
_ADVICE_BESIDE = "It runs eagerly, as written, beside the compiled steps of other loops."


@dataclass
class Found:
    """What is found of a project.

    plans: its compiled steps, by files; taking: the `backward()` of each, by its identity.
    failed: calls that take gradients of no compiled step, with the reason.  learning: what learns
    and is no network's.  regions: what stays eager beside the steps.  findings: why all loops stay
    eager; places: the node and the reason of each.  local: why each region does.  joints: pairs of
    steps that are written as one.  computed: the functions that steps and networks run.
    """

    plans: dict[str, list[StepPlan]] = field(default_factory=dict)
    taking: dict[int, ast.Call] = field(default_factory=dict)
    failed: list[tuple[FileEdit, ast.AST, EagerError]] = field(default_factory=list)
    learning: list[tuple[FileEdit, EagerError]] = field(default_factory=list)
    regions: Regions = field(default_factory=Regions)
    findings: list[Finding] = field(default_factory=list)
    places: list[tuple[ast.AST | None, str]] = field(default_factory=list)
    local: dict[ast.AST, Finding] = field(default_factory=dict)
    joints: dict[str, list[Joint]] = field(default_factory=dict)
    computed: Set[ast.FunctionDef | ast.AsyncFunctionDef] = frozenset()

    @property
    def every_plan(self) -> list[StepPlan]:
        """The compiled steps of all files."""
        return [plan for several in self.plans.values() for plan in several]

    def blamed(self) -> dict[ast.AST, EagerError]:
        """The calls whose steps hold what keeps all loops eager; empty where it is elsewhere."""
        inside = {plan.loop: set(ast.walk(plan.loop)) for plan in self.every_plan}
        return {
            self.taking[id(plan)]: EagerError(node, reason)
            for node, reason in self.places
            for plan in self.every_plan
            if node is not None and node in inside[plan.loop]
        }

    def say(self, file: str, node: ast.AST | None, reason: str) -> None:
        """Remember why all loops stay as they are."""
        self.places.append((node, reason))
        self.findings.append(_finding(file, node, reason))

    def say_of(self, place: ast.AST | None, file: str, node: ast.AST | None, reason: str) -> None:
        """Remember why a region stays as it is, if the place is in one; else as `say`."""
        region = self.regions.around(place)
        if region is None:
            self.say(file, node, reason)
        else:
            self.local.setdefault(region, _finding(file, node, reason, _ADVICE_BESIDE))


def _finding(file: str, node: ast.AST | None, reason: str, advice: str = _ADVICE) -> Finding:
    line, column = (0, 0) if node is None else (node.lineno, node.col_offset + 1)  # type: ignore[attr-defined]
    message = f"this training stays eager: {reason}"
    return Finding(file, line, column, _CODE, message, advice, Level.LOOK)
