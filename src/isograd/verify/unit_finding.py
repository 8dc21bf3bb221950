"""A finding of one unit that was replayed alone, with what its severity is judged by."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from isograd.frameworks.base import Trial
from isograd.model import Finding
from isograd.verify.unit_result import TensorResult


@dataclass(eq=False)
class UnitFinding:
    """What is found out about a finding as the stage goes on.

    position: in the order of the calls.  shift: the tensor whose error is moved through a pass, of
    stage forward; gradients: those that differ, of stage backward.  quiet: the trials that explain
    a difference below the noise; is_loud: whether its gradients are beyond the noise.
    """

    finding: Finding
    position: float
    shift: TensorResult | None = None
    gradients: list[TensorResult] = field(default_factory=list)
    quiet: tuple[Trial, ...] = ()
    is_loud: bool = False

    def change(self, **fields: Any) -> None:
        """Replace fields of the finding."""
        self.finding = dataclasses.replace(self.finding, **fields)
