"""torch.nn's transformer: layers, stacks of them, and the whole."""

from __future__ import annotations

import copy
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.attention import MultiheadAttention
from isograd.runtime.starting import init_xavier_uniform
from isograd.runtime.torch_containers import ModuleList
from isograd.runtime.torch_layers import Dropout, Linear
from isograd.runtime.torch_module import Module
from isograd.runtime.torch_norms import LayerNorm


class TransformerLayer(Module):
    """What the layers share: attentions, a wide layer between two narrow ones, norms."""

    attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name in self.attentions:
            settings = {"batch_first": batch_first, "dtype": dtype}
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, **settings))
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        for number in range(1, len(self.attentions) + 2):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            setattr(self, f"norm{number}", norm)
        for number in range(1, len(self.attentions) + 2):
            setattr(self, f"dropout{number}", Dropout(dropout))
        known = {"relu": ops.relu, "gelu": ops.gelu}
        self.activation = known[activation] if isinstance(activation, str) else activation

    def _added(self, x: Any, number: int, block: Any, *given: Any, **named: Any) -> Any:
        """A block beside its input, with a norm before it or behind the sum."""
        norm = getattr(self, f"norm{number}")
        if self.norm_first:
            return x + block(norm(x), *given, **named)
        return norm(x + block(x, *given, **named))

    def _sa_block(
        self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Any:
        found = self.self_attn(x, x, x, key_padding_mask, False, attn_mask)[0]
        return self.dropout1(found)

    def _ff_block(self, x: Any) -> Any:
        last = getattr(self, f"dropout{len(self.attentions) + 1}")
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(TransformerLayer, nn.TransformerEncoderLayer):  # type: ignore[misc]
    """torch.nn.TransformerEncoderLayer."""

    def construct(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """Attention to itself, then the wide layer."""
        masks = (src_mask, src_key_padding_mask)
        x = self._added(src, 1, self._sa_block, *masks, is_causal=is_causal)
        return self._added(x, 2, self._ff_block)


class TransformerDecoderLayer(TransformerLayer, nn.TransformerDecoderLayer):  # type: ignore[misc]
    """torch.nn.TransformerDecoderLayer."""

    attentions = ("self_attn", "multihead_attn")

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Attention to itself, attention to the memory, then the wide layer."""
        masks = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._added(tgt, 1, self._sa_block, *masks)
        given = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._added(x, 2, self._mha_block, *given)
        return self._added(x, 3, self._ff_block)

    def _mha_block(
        self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Any:
        found = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask)[0]
        return self.dropout2(found)


class TransformerEncoder(Module, nn.TransformerEncoder):  # type: ignore[misc]
    """torch.nn.TransformerEncoder: copies of a layer."""

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
    ) -> Any:
        """One layer after the other."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module, nn.TransformerDecoder):  # type: ignore[misc]
    """torch.nn.TransformerDecoder: copies of a layer."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def construct(self, tgt: Any, memory: Any, *masks: Any, **named: Any) -> Any:
        """One layer after the other."""
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module, nn.Transformer):  # type: ignore[misc]
    """torch.nn.Transformer: an encoder and a decoder."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        more = (batch_first, norm_first, bias)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*settings, *more, dtype=dtype)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            other = TransformerDecoderLayer(*settings, *more, dtype=dtype)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.decoder = TransformerDecoder(other, num_decoder_layers, norm)
        for own in self.parameters():
            if own.ndim > 1:
                init_xavier_uniform(own)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Minus infinity above the diagonal."""
        kind = ms.float32 if dtype is None else dtype
        above = ops.arange(sz).expand_dims(1) < ops.arange(sz).expand_dims(0)
        return ops.masked_fill(ops.zeros((sz, sz), dtype=kind), above, float("-inf"))

    def construct(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The decoded target, with the encoded source as its memory."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks)
