"""Numbers of a watched MindSpore training: gradients, scales and weight decay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isograd import tree
from isograd.watch.looks import fast_norm
from isograd.watch.mindspore_calls import (
    is_tensor,
    numbers_of,
)


def as_gradients(found: Any) -> list[Any] | None:
    """The gradients of weights in what `grad` returned or an optimizer is called with."""
    if is_tensor(found):
        return [found]
    if not isinstance(found, (tuple, list)):
        return None
    tensors = tree.flatten(found, is_tensor)[0]
    nested = [part for part in found if isinstance(part, (tuple, list))]
    if nested:
        # Gradients of inputs and of weights: the weights come last.
        return tree.flatten(nested[-1], is_tensor)[0]
    return tensors


def gradient_norms(gradients: list[Any]) -> tuple[Any, Any]:
    """Norms, NaN where not finite and 0 where there is none; and which are not finite."""
    norms = [0.0 if gradient is None else _norm(gradient) for gradient in gradients]
    found = np.array(norms, dtype=np.float64)
    bad = ~np.isfinite(found)
    return np.where(bad, np.nan, found), bad


def _norm(gradient: Any) -> float:
    values = numbers_of(gradient)
    return math.nan if values is None else fast_norm(values)


def scale_of(scaler: Any) -> float | None:
    """The present scale of a scaler of mindspore.amp or of a manager."""
    if scaler is None:
        return None
    for name in ("scale_value", "loss_scale"):
        value: Any = getattr(scaler, name, None)
        if is_tensor(value):
            return float(value.asnumpy().reshape(-1)[0])
        if isinstance(value, (int, float)):
            return float(value)
    getter = getattr(scaler, "get_loss_scale", None)
    return float(getter()) if callable(getter) else None


def decayed(optimizer: Any, parameters: list[Any]) -> Any:
    """Whether weight decay applies to each parameter."""
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        flags = {id(p): bool(g.get("weight_decay")) for g in groups for p in g["params"]}
        return np.array([flags.get(id(p), False) for p in parameters], dtype=bool)
    flags_ = getattr(optimizer, "decay_flags", ())
    decay = getattr(optimizer, "weight_decay", 0.0)
    if getattr(optimizer, "is_group", False) and isinstance(decay, (tuple, list)):
        return np.array([bool(_plain(d)) for d in decay], dtype=bool)
    value = bool(_plain(decay))
    found = [value and (not flags_ or bool(flags_[at])) for at in range(len(parameters))]
    return np.array(found, dtype=bool)


def _plain(value: Any) -> float:
    """A plain number of what may be a tensor."""
    if is_tensor(value):
        return float(value.asnumpy().reshape(-1)[0])
    return float(value) if isinstance(value, (int, float)) else 0.0
