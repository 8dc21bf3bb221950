"""A run's scalars as TensorBoard events, by tensorboardX."""

from __future__ import annotations

from pathlib import Path

from isograd.errors import UsageError
from isograd.runs.reader import Run, is_run


def write_events(source: Path, target: Path) -> None:
    """Write all scalars of a run; UsageError where that cannot be done."""
    if not is_run(source):
        raise UsageError(f"{source} is no run of isograd's", "--tensorboard takes a run's folder.")
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise UsageError(
            "tensorboardX is not installed", "Install it: pip install 'isograd[tensorboard]'."
        ) from error
    scalars = Run(source).scalars
    times = dict(zip(scalars.steps.tolist(), scalars.times.tolist(), strict=True))
    try:
        with SummaryWriter(str(target), write_to_disk=True) as writer:
            for name in scalars.columns:
                steps, values = scalars.series(name)
                for step, value in zip(steps.tolist(), values.tolist(), strict=True):
                    writer.add_scalar(name, value, step, walltime=times[step])
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error}", "Give another folder.") from error
