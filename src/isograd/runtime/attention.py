"""torch.nn.MultiheadAttention."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import layers
from isograd.runtime.pointwise import softmax_by_hand, softmax_of_masked


class MultiheadAttention(nn.MultiheadAttention):  # type: ignore[misc]
    """torch.nn.MultiheadAttention.

    MindSpore's own returns one part where no weights are asked for, takes its inputs by place
    alone, and begins with a bias of the output that is not 0.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        widths = {"kdim": kdim, "vdim": vdim, "dtype": ms.float32 if dtype is None else dtype}
        more = (bias, add_bias_kv, add_zero_attn)
        super().__init__(embed_dim, num_heads, dropout, *more, batch_first=batch_first, **widths)
        self.out_proj = nn.Dense(
            embed_dim, embed_dim, bias_init="zeros", has_bias=bias, dtype=widths["dtype"]
        )

    #: MindSpore's own looks for its inputs among the positions alone.
    __call__ = nn.Cell.__call__

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """The attended values, and the weights of the attention (or None)."""
        axis = 0 if query.ndim == 2 or self.batch_first else 1
        weights = [self.in_proj_weight]
        if not self._qkv_same_embed_dim:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        more = [] if self.bias_k is None else [(self.bias_k, self.bias_v)]
        found, attention = _attended(
            (query, key, value),
            axis,
            self.num_heads,
            _projections(weights, self.in_proj_bias),
            more,
            self.add_zero_attn,
            (self.out_proj.weight, self.out_proj.bias),
            self.dropout if self.training else 0.0,
            (attn_mask, key_padding_mask),
            need_weights,
        )
        return found, _shown(attention, query.ndim, need_weights, average_attn_weights)


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    average_attn_weights: bool = True,
) -> tuple[Any, Any]:
    """The attention of torch.nn.MultiheadAttention with the weights given; sequences go first."""
    weights = [in_proj_weight]
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    found, attention = _attended(
        (query, key, value),
        0 if query.ndim == 2 else 1,
        num_heads,
        _projections(weights, in_proj_bias),
        [] if bias_k is None else [(bias_k, bias_v)],
        add_zero_attn,
        (out_proj_weight, out_proj_bias),
        dropout_p if training else 0.0,
        (attn_mask, key_padding_mask),
        need_weights,
    )
    return found, _shown(attention, query.ndim, need_weights, average_attn_weights)


def _attended(
    inputs: tuple[Any, Any, Any],
    axis: int,
    num_heads: int,
    projections: list[tuple[Any, Any]],
    more: list[tuple[Any, Any]],
    add_zero: bool,
    out_projection: tuple[Any, Any],
    dropout_p: float,
    masks: tuple[Any, Any],
    is_asked: bool,
) -> tuple[Any, Any]:
    """The attended values, and the weights by batch, head, query and key.

    axis: of the batches.  more: keys and values that are put behind the others.
    masks: one for pairs of positions, and one for the keys of each batch.
    is_asked: whether the weights are asked for; where not, torch takes its fused attention, which
    gives zeros to a query that sees no key, and otherwise NaN.
    """
    batched = inputs[0].ndim == 3
    attn_mask, key_padding_mask = masks
    if not batched:
        inputs = tuple(x.expand_dims(0) for x in inputs)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.expand_dims(0)
    elif axis:
        inputs = tuple(ops.swapaxes(x, 0, 1) for x in inputs)
    pairs = zip(inputs, projections)
    q, k, v = (layers.linear(x, weight, bias) for x, (weight, bias) in pairs)
    if add_zero:
        zero = ops.zeros((1, 1, k.shape[-1]), dtype=k.dtype)
        more = [*more, (zero, zero)]
    k, v, attn_mask, key_padding_mask = _longer(k, v, more, attn_mask, key_padding_mask)
    q, k, v = (ops.swapaxes(x.reshape(*x.shape[:2], num_heads, -1), 1, 2) for x in (q, k, v))
    scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) / math.sqrt(q.shape[-1])
    scores = _masked(scores, attn_mask)
    if key_padding_mask is not None:
        scores = _masked(scores, key_padding_mask.expand_dims(1).expand_dims(1))
    is_masked = attn_mask is not None or key_padding_mask is not None
    if is_masked and not is_asked:
        weights = softmax_of_masked(scores)
    else:
        weights = softmax_by_hand(scores, -1)
    weights = layers.dropout(weights, dropout_p, True)
    joined = ops.swapaxes(ops.matmul(weights, v), 1, 2)
    found = layers.linear(joined.reshape(*joined.shape[:2], -1), *out_projection)
    if not batched:
        found = found.squeeze(0)
    elif axis:
        found = ops.swapaxes(found, 0, 1)
    return found, weights


def _projections(weights: list[Any], bias: Any) -> list[tuple[Any, Any]]:
    """The weight and the bias for queries, keys and values; one weight holds all three."""
    if len(weights) == 1:
        weights = ops.chunk(weights[0], 3, 0)
    biases = (None,) * 3 if bias is None else ops.chunk(bias, 3, 0)
    return list(zip(weights, biases))


def _longer(k: Any, v: Any, more: list[tuple[Any, Any]], *masks: Any) -> tuple[Any, ...]:
    """Keys and values with others behind, and masks to match."""
    for other_k, other_v in more:
        shape = (k.shape[0], 1, k.shape[-1])
        k = ops.cat((k, ops.broadcast_to(other_k, shape)), 1)
        v = ops.cat((v, ops.broadcast_to(other_v, shape)), 1)
        masks = tuple(
            m if m is None else ops.cat((m, ops.zeros((*m.shape[:-1], 1), dtype=m.dtype)), -1)
            for m in masks
        )
    return (k, v, *masks)


def _shown(weights: Any, dimensions: int, is_asked: bool, is_averaged: bool) -> Any:
    """The weights as they are returned: of all heads or their mean, or None."""
    if not is_asked:
        return None
    if is_averaged:
        weights = weights.mean(1)
    return weights if dimensions == 3 else weights.squeeze(0)


def _masked(scores: Any, mask: Any) -> Any:
    """True in a mask of booleans forbids; numbers are added."""
    if mask is None:
        return scores
    if mask.ndim == 3:
        mask = mask.reshape(scores.shape)
    if mask.dtype != ms.bool_:
        return scores + mask
    return ops.masked_fill(scores, mask, -math.inf)
