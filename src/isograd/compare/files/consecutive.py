"""Whether two checkpoints are states of one training, by what their names say."""

from __future__ import annotations

import re

from isograd.checkpoints.base import TensorSource

#: What numbers a state: `step_100`, `epoch=3`, `checkpoint-500`, and MindSpore's `net-1_100.ckpt`.
_STATE = re.compile(
    r"(?:global_?step|step|iter(?:ation)?|epoch|checkpoint|ckpt)[-_=]?(\d+)|-(\d+_\d+)(?=\.ckpt$)",
    re.IGNORECASE,
)
#: Kinds of sources that are checkpoints.
_CHECKPOINTS = ("torch", "safetensors", "mindspore checkpoint", "mindspore")

NOTE = (
    "by their names these are states of one training, so that changes are expected; "
    "--no-consecutive asks whether they are equal"
)


def are_states_of_one_training(reference: TensorSource, other: TensorSource) -> bool:
    """Whether both are checkpoints of one kind with the same names and another step number."""
    if reference.kind != other.kind or not reference.kind.lower().startswith(_CHECKPOINTS):
        return False
    first, second = ("/".join(source.path.parts[-2:]) for source in (reference, other))
    is_alike = _STATE.sub("#", first) == _STATE.sub("#", second)
    numbers = [_STATE.findall(name) for name in (first, second)]
    if not is_alike or not numbers[0] or numbers[0] == numbers[1]:
        return False
    return set(reference.names()) == set(other.names())
