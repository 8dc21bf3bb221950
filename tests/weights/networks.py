"""One network with a layer of each kind whose names or layouts differ, for both frameworks."""

from __future__ import annotations

from typing import Any


def build_torch() -> Any:
    from torch import nn

    return _fill(
        nn.Module(),
        stem=nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.PReLU(4)),
        conv=nn.Conv1d(4, 5, 3),
        bn=nn.BatchNorm1d(5),
        up=nn.ConvTranspose1d(5, 6, 2),
        volume=nn.Conv3d(2, 3, 2),
        volume_bn=nn.BatchNorm3d(3),
        emb=nn.Embedding(7, 4),
        ln=nn.LayerNorm(4),
        gn=nn.GroupNorm(2, 4),
        lstm=nn.LSTM(4, 3, 2, bidirectional=True),
        gru=nn.GRU(4, 3),
        mha=nn.MultiheadAttention(4, 2),
        encoder=nn.TransformerEncoderLayer(4, 2, 8),
        head=nn.Linear(4, 2),
    )


def build_mindspore() -> Any:
    from mindspore import nn

    return _fill(
        nn.Cell(),
        stem=nn.SequentialCell(nn.Conv2d(3, 4, 3, has_bias=True), nn.BatchNorm2d(4), nn.PReLU(4)),
        conv=nn.Conv1d(4, 5, 3, has_bias=True),
        bn=nn.BatchNorm1d(5),
        up=nn.Conv1dTranspose(5, 6, 2, has_bias=True),
        volume=nn.Conv3d(2, 3, 2, has_bias=True),
        volume_bn=nn.BatchNorm3d(3),
        emb=nn.Embedding(7, 4),
        ln=nn.LayerNorm((4,)),
        gn=nn.GroupNorm(2, 4),
        lstm=nn.LSTM(4, 3, 2, bidirectional=True),
        gru=nn.GRU(4, 3),
        mha=nn.MultiheadAttention(4, 2),
        encoder=nn.TransformerEncoderLayer(4, 2, 8),
        head=nn.Dense(4, 2),
    )


def _fill(network: Any, **layers: Any) -> Any:
    for name, layer in layers.items():
        setattr(network, name, layer)
    return network
