"""The stages of a verification, from parameters to the static graph: one file with `run` each."""

from __future__ import annotations

from collections.abc import Callable

from isograd.model import Stage
from isograd.verify.stages import (
    backward,
    compiled,
    forward,
    inference,
    loss,
    parameters,
    training,
    update,
)
from isograd.verify.stages.context import StageContext, StageOutcome

STAGES: dict[Stage, Callable[[StageContext], StageOutcome]] = {
    Stage.PARAMETERS: parameters.run,
    Stage.FORWARD: forward.run,
    Stage.LOSS: loss.run,
    Stage.BACKWARD: backward.run,
    Stage.UPDATE: update.run,
    Stage.TRAINING: training.run,
    Stage.INFERENCE: inference.run,
    Stage.COMPILED: compiled.run,
}
