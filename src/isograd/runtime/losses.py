"""Losses, composed, with torch's reductions."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import root, sum_of
from isograd.runtime.exact import exp, log1p
from isograd.runtime.layers import linear
from isograd.runtime.module_functions import FLOATS
from isograd.runtime.pointwise import absolute, log_sigmoid, log_softmax, minimum
from isograd.runtime.reductions import pairwise_distance
from isograd.runtime.shapes import broadcast_tensors


def reduced(losses: Any, reduction: str, divisor: Any = None) -> Any:
    if reduction == "none":
        return losses
    total = sum_of(losses, tuple(range(losses.ndim)))
    if reduction == "sum":
        return total
    if reduction == "batchmean":
        return total / losses.shape[0]
    return total / (losses.size if divisor is None else divisor)


def picked(logs: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
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
    """Of classes, or of probabilities in the shape of the input."""
    axis = 0 if input.ndim == 1 else 1
    logs, count = log_softmax(input, axis), input.shape[axis]
    shape = tuple(count if i == axis else 1 for i in range(input.ndim))
    if target.dtype in FLOATS:  # not by shapes, which the static graph may not know
        smooth = target * (1 - label_smoothing) + label_smoothing / count
        weighted = logs if weight is None else logs * weight.reshape(shape)
        losses = -sum_of(weighted * smooth, (axis,))
        return reduced(losses, reduction, max(input.size // count, 1))
    chosen, counted = picked(logs, target, weight, ignore_index)
    losses = -chosen
    if label_smoothing:
        kept = (target != ignore_index).astype(logs.dtype)
        weighted = logs if weight is None else logs * weight.reshape(shape)
        everywhere = -sum_of(weighted, (axis,)) * kept
        losses = (1 - label_smoothing) * losses + label_smoothing / count * everywhere
    return reduced(losses, reduction, sum_of(counted, tuple(range(counted.ndim))))


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """The negated entries of the target's classes."""
    chosen, counted = picked(input, target, weight, ignore_index)
    return reduced(-chosen, reduction, sum_of(counted, tuple(range(counted.ndim))))


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Squared distances."""
    distances = input - target
    return reduced(distances * distances, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Distances."""
    return reduced(absolute(input - target), reduction)


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Any:
    """Of probabilities; logarithms and the slope are cut as in torch.

    MindSpore's own (2.10) doubles the loss of one element, cuts logarithms at -27.6, reads beyond
    a weight of fewer elements, and has no float64.
    """
    share = ops.stop_gradient(input)
    logs, rest = (ops.clamp(one, -100.0, None) for one in (ops.log(share), log1p(-share)))
    value = -(target * logs + (1 - target) * rest)
    slope = (share - target) / ops.clamp(share * (1 - share), 1e-12, None)
    found = value + (input - share) * ops.stop_gradient(slope)
    return reduced(found if weight is None else found * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Of the sigmoid, without overflow."""
    positive = target if pos_weight is None else target * pos_weight
    found = -(positive * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    return reduced(found if weight is None else found * weight, reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Squares near 0, distances beyond beta."""
    distances = ops.abs(input - target)
    if beta == 0:
        return reduced(distances, reduction)
    near = 0.5 * distances * distances / beta
    return reduced(ops.where(distances < beta, near, distances - 0.5 * beta), reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """The Kullback-Leibler divergence from log-probabilities."""
    if log_target:
        return reduced(exp(target) * (target - input), reduction)
    positive = target > 0
    safe = ops.where(positive, target, ops.ones_like(target))
    zero = ops.zeros_like(target)
    return reduced(ops.where(positive, target * ops.log(safe), zero) - target * input, reduction)


def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + exp(-target * input))."""
    return reduced(-log_sigmoid(target.astype(input.dtype) * input), reduction)


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean"
) -> Any:
    """Of scores in an order, by a target of any dtype, which MindSpore's does not take."""
    target = target.astype(input1.dtype)
    return ops.margin_ranking_loss(input1, input2, target, float(margin), reduction)


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Any:
    """The negative log-likelihood of a Poisson distribution."""
    if log_input:
        losses = exp(input) - target * input
    else:
        losses = input - target * ops.log(input + eps)
    if full:
        safe = ops.where(target > 1, target, ops.ones_like(target))
        more = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * np.pi * safe)
        losses = losses + ops.where(target > 1, more, ops.zeros_like(target))
    return reduced(losses, reduction)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Each length is at least eps, as in torch since 1.12; dim counts in the common shape."""
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    axis = dim % max(x1.ndim, 1)

    def length(x: Any) -> Any:
        found = root(sum_of(x * x, (axis,)))
        # The gradient is that of the length, as in torch, which clamps outside of its record.
        return found + ops.stop_gradient(ops.clamp(found, min=eps) - found)

    return sum_of(x1 * x2, (axis,)) / (length(x1) * length(x2))


def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    """The input where the target is 1, what it lacks of a margin where it is -1."""
    zero = ops.zeros_like(input)
    near = ops.where(target == -1, zero, input)
    far = ops.where(target == 1, zero, ops.clamp(margin - input, 0))
    return reduced(near + far, reduction)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """1 less the cosine where the target is 1, what the cosine has over a margin where it is -1.

    As in torch the squared lengths are raised by 1e-12, so that zeros have a gradient.
    """
    squares = [sum_of(x * x, (target.ndim,)) + 1e-12 for x in (input1, input2)]
    cosine = sum_of(input1 * input2, (target.ndim,)) / ops.sqrt(squares[0] * squares[1])
    zero = ops.zeros_like(cosine)
    near = ops.where(target == 1, 1 - cosine, zero)
    far = ops.where(target == -1, ops.clamp(cosine - margin, 0), zero)
    return reduced(near + far, reduction)


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """How much nearer the alike one should be than the other, by a margin."""
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(ops.relu(near - far + margin), reduction)


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """triplet_margin_loss by any distance; at the margin itself torch's gradient goes through."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    gap = margin + near - far
    return reduced(ops.where(gap < 0, ops.zeros_like(gap), gap), reduction)


def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far each other class comes within a margin of the target's."""
    own = ops.gather_elements(input, 1, target.expand_dims(1))
    other = target.expand_dims(1) != ms.Tensor(np.arange(input.shape[1]))
    gap = ops.relu(margin - own + input)
    gap = gap if p == 1 else gap * gap
    gap = gap if weight is None else gap * weight[target].expand_dims(1)
    losses = ops.where(other, gap, ops.zeros_like(input))
    return reduced(sum_of(losses, (1,)) / input.shape[1], reduction)


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Connectionist temporal classification by the forward recursion, example by example."""
    losses, counts = [], []
    ends = np.cumsum(np.asarray(target_lengths))
    for number in range(log_probs.shape[1]):
        steps, count = int(input_lengths[number]), int(target_lengths[number])
        if targets.ndim == 2:
            labels = targets[number, :count].asnumpy()
        else:
            labels = targets.asnumpy()[ends[number] - count : ends[number]]
        if steps:
            logs = log_probs[:steps, number]
            whole = ops.exp(logs).sum()  # torch's gradient takes the sum for 1, whatever it is
            losses.append(_ctc_of_one(logs, labels, blank) + (whole - ops.stop_gradient(whole)))
        else:
            nothing = 1e30 if count else 0.0  # no path, or the empty one
            losses.append(ops.zeros_like(log_probs[0, number, 0]) + nothing)
        counts.append(max(count, 1))
    found = ops.stack(losses)
    share = 0.0 if zero_infinity else math.inf  # a factor, which leaves other gradients alone
    whole = ops.stop_gradient(found * 0 + 1)  # of the dtype that only the run shows
    found = found * ops.where(found > 1e29, whole * share, whole)
    if reduction == "mean":
        return (found / ms.Tensor(np.array(counts, np.float32))).mean()
    return found.sum() if reduction == "sum" else found


def _ctc_of_one(logs: Any, labels: Any, blank: int) -> Any:
    """The loss of one sequence; -1e30 stands for log 0."""
    extended = np.full(2 * len(labels) + 1, blank)
    extended[1::2] = labels
    chosen = ops.gather(logs, ms.Tensor(extended.astype(np.int32)), 1)
    if len(extended) == 1:
        return -chosen.sum()
    may_skip = np.zeros(len(extended), bool)
    may_skip[2:] = (extended[2:] != blank) & (extended[2:] != extended[:-2])
    skips = ms.Tensor(np.where(may_skip, 0.0, -1e30).astype(np.float32))
    start = np.where(np.arange(len(extended)) < 2, 0.0, -1e30).astype(np.float32)
    alpha = chosen[0] + ms.Tensor(start)
    none = ms.Tensor(np.full(2, -1e30, np.float32))
    for step in range(1, logs.shape[0]):
        before = ops.cat((none[:1], alpha[:-1]))
        two_before = ops.cat((none, alpha[:-2]))
        paths = ops.stack([alpha, before, two_before + skips])
        alpha = chosen[step] + ops.logsumexp(paths, 0)
    return -ops.logsumexp(alpha[-2:], 0)


def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """How far wrong classes come within 1 of the right ones; a target's list ends at -1."""
    scores, lists = (x if x.ndim == 2 else x.expand_dims(0) for x in (input, target))
    named = lists.asnumpy()
    named = np.where(np.cumsum(named < 0, 1) > 0, -1, named)
    times = (named[:, :, None] == np.arange(scores.shape[1])).sum(1)
    weights = (times[:, :, None] * (times[:, None, :] == 0)).astype(np.float32)
    gaps = ops.relu(1 - (scores.expand_dims(2) - scores.expand_dims(1)))
    found = sum_of(gaps * ms.Tensor(weights), (1, 2)) / scores.shape[1]
    return reduced(found if input.ndim == 2 else found.squeeze(0), reduction)


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """cross_entropy of a linear layer's outputs; torch's options save memory alone."""
    classes, *more = linear_weight.shape[:-1]
    if more and input.ndim == 1:
        raise RuntimeError("a loss of several outputs for each class needs a batch of inputs")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    found = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    logits = found.reshape(*input.shape[:-1], classes, *more)
    if ignore_index is not None and tuple(target.shape) == tuple(logits.shape):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)
