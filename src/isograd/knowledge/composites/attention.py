"""torch.nn.MultiheadAttention."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.knowledge.composites import layers
from isograd.knowledge.composites.parametric import constant_parameter, uniform_parameter
from isograd.knowledge.composites.pointwise import softmax


class MultiheadAttention(nn.Cell):  # type: ignore[misc]
    """torch.nn.MultiheadAttention of one width."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        bound = math.sqrt(6 / (4 * embed_dim))
        self.in_proj_weight = uniform_parameter((3 * embed_dim, embed_dim), bound, "in_proj_weight")
        self.in_proj_bias = (
            constant_parameter((3 * embed_dim,), 0.0, "in_proj_bias") if bias else None
        )
        self.out_proj = nn.Dense(embed_dim, embed_dim, has_bias=bias)

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
    ) -> tuple[Any, Any]:
        """The attended values, and the weights of the attention (or None)."""
        if not self.batch_first:
            query, key, value = (ops.swapaxes(x, 0, 1) for x in (query, key, value))
        biases = (None,) * 3 if self.in_proj_bias is None else ops.chunk(self.in_proj_bias, 3, 0)
        parts = ops.chunk(self.in_proj_weight, 3, 0)
        q, k, v = (
            self._heads(layers.linear(x, weight, bias))
            for x, weight, bias in zip((query, key, value), parts, biases, strict=True)
        )
        scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) / math.sqrt(q.shape[-1])
        scores = _masked(scores, attn_mask)
        if key_padding_mask is not None:
            scores = _masked(scores, key_padding_mask.expand_dims(1).expand_dims(1))
        weights = softmax(scores, -1)
        if self.training and self.dropout:
            weights = ops.dropout(weights, self.dropout, True)
        joined = ops.swapaxes(ops.matmul(weights, v), 1, 2)
        found = self.out_proj(joined.reshape(*joined.shape[:2], -1))
        if not self.batch_first:
            found = ops.swapaxes(found, 0, 1)
        if not need_weights:
            return found, None
        return found, weights.mean(1) if average_attn_weights else weights

    def _heads(self, x: Any) -> Any:
        return ops.swapaxes(x.reshape(*x.shape[:2], self.num_heads, -1), 1, 2)


def _masked(scores: Any, mask: Any) -> Any:
    """True in a mask of booleans forbids; numbers are added."""
    if mask is None:
        return scores
    if mask.dtype != ms.bool_:
        mask = mask if mask.ndim < 3 else mask.reshape(scores.shape)
        return scores + mask
    if mask.ndim == 3:
        mask = mask.reshape(scores.shape)
    return ops.masked_fill(scores, mask, -math.inf)
