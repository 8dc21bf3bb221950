"""What a checkpoint holds beside its network: optimizer states, copies and counters.

Names are those that MindSpore 2.10's optimizers write (saved from a TrainOneStepCell), and those of
the common trainers; torch's optimizer states are known by their structure when the file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from isograd.checkpoints.base import TensorInfo
from isograd.errors import UsageError

#: What stands before the name of a parameter, with a dot, for the optimizer's state of it.
_STATES = frozenset(
    """moments moment moment1 moment2 momentum accum accum_update stat adam_m adam_v lamb_m lamb_v
    mean_square mean_gradient linear exp_avg exp_avg_sq max_exp_avg_sq prev step_size ax_ mu eta
    """.split()
)
#: The same where it stands before the name without a dot.
_GLUED = ("exp_avg_sq_row_", "exp_avg_sq_col_", "exp_avg_sq_", "mu_", "eta_")
_COUNTERS = frozenset(
    """global_step learning_rate momentum beta1_power beta2_power weight_decay afactor_step
    state_step step step_num epoch epoch_num loss_scale scale_sense current_iterator_step
    last_overflow_iterator_step lr
    """.split()
)
_COPIES = frozenset({"ema", "model_ema", "ema_model", "swa", "averaged"})

OPTIMIZER = "optimizer"
COUNTERS = "counters"


def with_parts(infos: Iterable[TensorInfo]) -> list[TensorInfo]:
    """The same tensors, each with the part that its file or its name tells."""
    found = list(infos)
    shapes = {info.name: info.shape for info in found}
    first: dict[str, list[TensorInfo]] = {}
    for info in found:
        first.setdefault(info.name.partition(".")[0], []).append(info)
    states = {name for name, group in first.items() if _is_state(name, group, shapes)}
    named = [
        info if info.part else replace(info, part=_part(info, states, shapes)) for info in found
    ]
    if all(info.part for info in named):
        return [replace(info, part="") for info in named]
    return named


def chosen_part(infos: list[TensorInfo], part: str) -> list[TensorInfo]:
    """The tensors of one part; UsageError where there is none of this name."""
    found = [info for info in infos if info.part == part]
    if not found:
        known = sorted({info.part for info in infos if info.part})
        raise UsageError(
            f"--part {part!r} is no part of the source",
            f"Its parts are: {', '.join(known) or 'none beside the network'}.",
        )
    return found


def _is_state(name: str, group: list[TensorInfo], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    if name not in _STATES | _COPIES:
        return False
    rests = [info.name.partition(".")[2] for info in group if "." in info.name]
    return bool(rests) and all(
        shapes.get(info.name.partition(".")[2]) == info.shape for info in group if "." in info.name
    )


def _part(info: TensorInfo, states: set[str], shapes: Mapping[str, tuple[int, ...]]) -> str:
    first, dot, _ = info.name.partition(".")
    if dot and first in states:
        return first if first in _COPIES else OPTIMIZER
    if any(info.name.startswith(p) and info.name[len(p) :] in shapes for p in _GLUED):
        return OPTIMIZER
    if not dot and first in _COUNTERS and info.shape in ((), (1,)):
        return COUNTERS
    return ""
