"""Losses, composed, with torch's reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import ops

from isograd.runtime.basics import sum_of
from isograd.runtime.losses import (
    cosine_similarity,
    cross_entropy,
    kl_div,
    nll_loss,
    poisson_nll_loss,
    reduced,
    smooth_l1_loss,
    soft_margin_loss,
)
from isograd.runtime.pointwise import log_sigmoid


def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    squares = (input - target) * (input - target)
    if weight is None:
        return reduced(squares, reduction)
    return reduced(squares * weight, reduction, _sum(weight + ops.zeros_like(squares)))


def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    distances = ops.abs(input - target)
    if weight is None:
        return reduced(distances, reduction)
    return reduced(distances * weight, reduction, _sum(weight + ops.zeros_like(distances)))


def _sum(x: Any) -> Any:
    return sum_of(x, tuple(range(x.ndim)))


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    distances = ops.abs(input - target)
    near = 0.5 * distances * distances
    losses = ops.where(distances <= delta, near, delta * (distances - 0.5 * delta))
    if weight is None:
        return reduced(losses, reduction)
    return reduced(losses * weight, reduction, _sum(weight + ops.zeros_like(losses)))


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Any:
    """Torch cuts logarithms off at -100, and probabilities at 1e-12 in the gradient."""

    def log(x: Any) -> Any:
        safe = ops.where(x > 1e-43, x, ops.ones_like(x))
        return ops.where(x > 1e-43, ops.log(safe), ops.full_like(x, -100.0))

    losses = -(target * log(input) + (1 - target) * log(1 - input))
    return reduced(losses if weight is None else losses * weight, reduction)


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
    return reduced(losses if weight is None else losses * weight, reduction)


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
