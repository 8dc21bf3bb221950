"""Losses, composed, with torch's reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from isograd.frameworks.mindspore.functions.basics import sum_of
from isograd.frameworks.mindspore.functions.exact import exp
from isograd.frameworks.mindspore.functions.pointwise import log_sigmoid, log_softmax


def _reduced(losses: Any, reduction: str, divisor: Any = None) -> Any:
    if reduction == "none":
        return losses
    total = sum_of(losses, tuple(range(losses.ndim)))
    if reduction == "sum":
        return total
    if reduction == "batchmean":
        return total / losses.shape[0]
    return total / (losses.size if divisor is None else divisor)


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    picked, counted = _picked(input, target, weight, ignore_index)
    return _reduced(-picked, reduction, sum_of(counted, tuple(range(counted.ndim))))


def _picked(logs: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """The weighted entries of the target's classes, and the weights themselves."""
    axis = 0 if logs.ndim == 1 else 1
    kept = target != ignore_index
    classes = ops.where(kept, target, ops.zeros_like(target)).astype(ms.int32)
    counted = kept.astype(logs.dtype)
    if weight is not None:
        flat = ops.gather(weight, classes.reshape(-1), 0)
        counted = counted * flat.reshape(classes.shape)
    chosen = ops.gather_elements(logs, axis, ops.expand_dims(classes, axis))
    return chosen.squeeze(axis) * counted, counted


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    axis = 0 if input.ndim == 1 else 1
    logs, count = log_softmax(input, axis), input.shape[axis]
    shape = tuple(count if i == axis else 1 for i in range(input.ndim))
    if tuple(target.shape) == tuple(input.shape):
        smooth = target * (1 - label_smoothing) + label_smoothing / count
        weighted = logs if weight is None else logs * weight.reshape(shape)
        losses = -sum_of(weighted * smooth, (axis,))
        return _reduced(losses, reduction, max(input.size // count, 1))
    picked, counted = _picked(logs, target, weight, ignore_index)
    losses = -picked
    if label_smoothing:
        kept = (target != ignore_index).astype(logs.dtype)
        weighted = logs if weight is None else logs * weight.reshape(shape)
        everywhere = -sum_of(weighted, (axis,)) * kept
        losses = (1 - label_smoothing) * losses + label_smoothing / count * everywhere
    return _reduced(losses, reduction, sum_of(counted, tuple(range(counted.ndim))))


def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    squares = (input - target) * (input - target)
    if weight is None:
        return _reduced(squares, reduction)
    return _reduced(squares * weight, reduction, _sum(weight + ops.zeros_like(squares)))


def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    distances = ops.abs(input - target)
    if weight is None:
        return _reduced(distances, reduction)
    return _reduced(distances * weight, reduction, _sum(weight + ops.zeros_like(distances)))


def _sum(x: Any) -> Any:
    return sum_of(x, tuple(range(x.ndim)))


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    distances = ops.abs(input - target)
    if beta == 0:
        return _reduced(distances, reduction)
    near = 0.5 * distances * distances / beta
    return _reduced(ops.where(distances < beta, near, distances - 0.5 * beta), reduction)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    distances = ops.abs(input - target)
    near = 0.5 * distances * distances
    losses = ops.where(distances <= delta, near, delta * (distances - 0.5 * delta))
    if weight is None:
        return _reduced(losses, reduction)
    return _reduced(losses * weight, reduction, _sum(weight + ops.zeros_like(losses)))


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Any:
    """Torch cuts logarithms off at -100, and probabilities at 1e-12 in the gradient."""

    def log(x: Any) -> Any:
        safe = ops.where(x > 1e-43, x, ops.ones_like(x))
        return ops.where(x > 1e-43, ops.log(safe), ops.full_like(x, -100.0))

    losses = -(target * log(input) + (1 - target) * log(1 - input))
    return _reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    logs = log_sigmoid(input)
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    losses = (1 - target) * input - factor * logs
    return _reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    if log_target:
        return _reduced(exp(target) * (target - input), reduction)
    positive = target > 0
    safe = ops.where(positive, target, ops.ones_like(target))
    zero = ops.zeros_like(target)
    return _reduced(ops.where(positive, target * ops.log(safe), zero) - target * input, reduction)


def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return _reduced(-log_sigmoid(target * input), reduction)


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Any:
    if log_input:
        losses = exp(input) - target * input
    else:
        losses = input - target * ops.log(input + eps)
    if full:
        safe = ops.where(target > 1, target, ops.ones_like(target))
        more = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * np.pi * safe)
        losses = losses + ops.where(target > 1, more, ops.zeros_like(target))
    return _reduced(losses, reduction)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Each length is at least eps, as in torch since 1.12."""

    def length(x: Any) -> Any:
        found = ops.sqrt(sum_of(x * x, (dim % x.ndim,)))
        return ops.where(found > eps, found, ops.full_like(found, eps))

    return sum_of(x1 * x2, (dim % x1.ndim,)) / (length(x1) * length(x2))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "nll_loss": nll_loss,
    "nll_loss_nd": nll_loss,
    "cross_entropy": cross_entropy,
    "cross_entropy_loss": cross_entropy,
    "mse_loss": mse_loss,
    "l1_loss": l1_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "kl_div": kl_div,
    "soft_margin_loss": soft_margin_loss,
    "poisson_nll_loss": poisson_nll_loss,
    "cosine_similarity": cosine_similarity,
}
