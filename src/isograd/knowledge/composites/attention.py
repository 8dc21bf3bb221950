"""torch.nn.MultiheadAttention."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.knowledge.composites import layers
from isograd.knowledge.composites.pointwise import softmax_by_hand
from isograd.knowledge.composites.starting import (
    init_constant,
    init_xavier_normal,
    init_xavier_uniform,
)
from isograd.knowledge.composites.torch_convolutions import parameter
from isograd.knowledge.composites.torch_layers import Linear
from isograd.knowledge.composites.torch_module import Module


class MultiheadAttention(Module, nn.MultiheadAttention):  # type: ignore[misc]
    """torch.nn.MultiheadAttention."""

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
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        names = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        shapes: dict[str, tuple[int, int]] = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        if not self._qkv_same_embed_dim:
            widths = (embed_dim, self.kdim, self.vdim)
            shapes = {n: (embed_dim, w) for n, w in zip(names[1:], widths, strict=True)}
        for name in names:
            setattr(self, name, parameter(*shapes[name]) if name in shapes else None)
        self.in_proj_bias = parameter(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, own in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                init_xavier_uniform(own)
            elif name.startswith("bias_"):
                init_xavier_normal(own)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init_constant(bias, 0.0)

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
        batched = query.ndim == 3
        if not batched:
            query, key, value = (x.expand_dims(0) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.expand_dims(0)
        elif not self.batch_first:
            query, key, value = (ops.swapaxes(x, 0, 1) for x in (query, key, value))
        q, k, v = self._projected(query, key, value)
        k, v, attn_mask, key_padding_mask = self._longer(k, v, attn_mask, key_padding_mask)
        q, k, v = (self._heads(x) for x in (q, k, v))
        scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) / math.sqrt(q.shape[-1])
        scores = _masked(scores, attn_mask)
        if key_padding_mask is not None:
            scores = _masked(scores, key_padding_mask.expand_dims(1).expand_dims(1))
        weights = layers.dropout(softmax_by_hand(scores, -1), self.dropout, self.training)
        joined = ops.swapaxes(ops.matmul(weights, v), 1, 2)
        found = self.out_proj(joined.reshape(*joined.shape[:2], -1))
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            found, weights = found.squeeze(0), weights.squeeze(0)
        elif not self.batch_first:
            found = ops.swapaxes(found, 0, 1)
        return found, weights if need_weights else None

    def _projected(self, *inputs: Any) -> list[Any]:
        biases = (None,) * 3 if self.in_proj_bias is None else ops.chunk(self.in_proj_bias, 3, 0)
        if self._qkv_same_embed_dim:
            parts = ops.chunk(self.in_proj_weight, 3, 0)
        else:
            parts = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return [layers.linear(x, w, b) for x, w, b in zip(inputs, parts, biases, strict=True)]

    def _longer(self, k: Any, v: Any, *masks: Any) -> tuple[Any, ...]:
        """Keys and values with the learnt one and the zero one behind, and masks to match."""
        more: list[tuple[Any, Any]] = []
        if self.bias_k is not None:
            more.append((self.bias_k, self.bias_v))
        if self.add_zero_attn:
            zero = ops.zeros((1, 1, self.embed_dim), dtype=k.dtype)
            more.append((zero, zero))
        for own_k, own_v in more:
            shape = (k.shape[0], 1, self.embed_dim)
            k = ops.cat((k, ops.broadcast_to(own_k, shape)), 1)
            v = ops.cat((v, ops.broadcast_to(own_v, shape)), 1)
            masks = tuple(
                m if m is None else ops.cat((m, ops.zeros((*m.shape[:-1], 1), dtype=m.dtype)), -1)
                for m in masks
            )
        return (k, v, *masks)

    def _heads(self, x: Any) -> Any:
        return ops.swapaxes(x.reshape(*x.shape[:2], self.num_heads, -1), 1, 2)


def _masked(scores: Any, mask: Any) -> Any:
    """True in a mask of booleans forbids; numbers are added."""
    if mask is None:
        return scores
    if mask.ndim == 3:
        mask = mask.reshape(scores.shape)
    if mask.dtype != ms.bool_:
        return scores + mask
    return ops.masked_fill(scores, mask, -math.inf)
