"""The names and layouts of one framework turned into those of the other, without its network.

The table is the migration guide's: a norm's weight and bias are gamma and beta in MindSpore, its
statistics moving_mean and moving_variance, an embedding's weight embedding_table; a
one-dimensional convolution keeps an axis of 1; num_batches_tracked does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable

from isograd.checkpoints.base import TensorInfo
from isograd.compare.pairing.conventions import ALONE_BY_CONVENTION, NORMS
from isograd.compare.pairing.transforms import Identity, Reshape, Transform
from isograd.weights.model import Dropped, Move, Plan
from isograd.weights.structure import framework_of, kinds_of, split_name

_STATISTICS = {"running_mean": "moving_mean", "running_var": "moving_variance"}
_NORM = {"weight": "gamma", "bias": "beta", **_STATISTICS}
_BACK = {
    **{there: here for here, there in _NORM.items()},
    "embedding_table": "weight",
}


def plan_by_convention(infos: Iterable[TensorInfo], source: str, target: str) -> Plan:
    """Plan every tensor; source, target: `torch` or `mindspore`."""
    found = list(infos)
    if source == target:
        return Plan(tuple(Move((info.name,), (info.name,)) for info in found))
    kinds = kinds_of(found)
    moves, dropped, guesses = [], [], []
    for info in found:
        module, attribute = split_name(info.name)
        kind = kinds[module]
        if attribute in ALONE_BY_CONVENTION and target == "mindspore":
            dropped.append(Dropped(info.name, "MindSpore's norms do not count their batches"))
            continue
        if target == "mindspore":
            name, transform = _to_mindspore(attribute, kind, info.shape)
            if attribute == "weight" and kind in ("Embedding", "RMSNorm", "PReLU"):
                guesses.append(f"{info.name} is taken for the weight of a {kind} (named {name})")
        else:
            name, transform = _to_torch(attribute, kind)
        why = "name" if name == attribute and isinstance(transform, Identity) else "convention"
        full = f"{module}.{name}" if module else name
        moves.append(Move((info.name,), (full,), transform, why))
    return Plan(tuple(moves), tuple(dropped), notes=tuple(guesses))


def names_of(infos: Iterable[TensorInfo], kind: str) -> str:
    """The framework whose names a source has."""
    return framework_of((info.name for info in infos), kind)


def _to_mindspore(attribute: str, kind: str, shape: tuple[int, ...]) -> tuple[str, Transform]:
    if kind in NORMS:
        return _NORM.get(attribute, attribute), Identity()
    if kind == "Embedding" and attribute == "weight":
        return "embedding_table", Identity()
    if kind == "PReLU" and attribute == "weight":
        return "w", Identity()
    if kind == "Conv1d" and attribute == "weight":
        return attribute, Reshape(shape, (*shape[:2], 1, shape[2]))
    return attribute, Identity()


def _to_torch(attribute: str, kind: str) -> tuple[str, Transform]:
    if kind == "PReLU" and attribute == "w":
        return "weight", Identity()
    return _BACK.get(attribute, attribute), Identity()
