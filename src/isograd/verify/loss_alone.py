"""The loss alone: both sides on the reference's recorded outputs and the same targets."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.compare.envelope import ISOLATED_VARIANTS, Measured, measured
from isograd.frameworks.base import Tensors
from isograd.tensors import TensorValue
from isograd.verify.end_to_end import PassResult, judge
from isograd.verify.session import Session


@dataclass(frozen=True)
class LossRun:
    """What both sides were given, what they yielded, and how it is judged."""

    outputs: list[TensorValue | None]
    targets: list[TensorValue]
    reference: dict[str, Measured]
    port: Tensors
    judged: PassResult


def run_loss(session: Session) -> LossRun:
    """Compute the loss of the last recorded pass's outputs on both sides."""
    recorded: Tensors = session.reference.call("recorded", 0)
    count = sum(1 for key in recorded if key.startswith("output."))
    outputs: list[TensorValue | None] = [recorded[f"output.{i}"] for i in range(count)]
    targets = session.targets()
    session.reference.send("measure_loss", outputs, targets, list(ISOLATED_VARIANTS))
    port: Tensors = session.port.call("loss", outputs, targets)
    reference = measured(session.reference.receive())
    return LossRun(outputs, targets, reference, port, judge(session, reference, port))
