"""Layers whose weight torch computes from other tensors, and MindSpore's with whole weights."""

from __future__ import annotations

from typing import Any


def build_torch() -> Any:
    import torch
    from torch import nn
    from torch.nn.utils import parametrizations, spectral_norm

    torch.manual_seed(1)
    network = nn.Module()
    network.first = parametrizations.weight_norm(nn.Linear(4, 4))
    network.line = parametrizations.weight_norm(nn.Conv1d(3, 5, 2), dim=1)
    network.all = parametrizations.weight_norm(nn.Linear(4, 3), dim=None)
    network.second = spectral_norm(nn.Linear(4, 4))
    network.up = parametrizations.spectral_norm(nn.ConvTranspose2d(3, 3, 3))
    network.turn = parametrizations.weight_norm(nn.GRU(4, 3), "weight_hh_l0")
    return network


def build_mindspore() -> Any:
    from mindspore import nn

    network = nn.Cell()
    network.first = nn.Dense(4, 4)
    network.line = nn.Conv1d(3, 5, 2, has_bias=True)
    network.all = nn.Dense(4, 3)
    network.second = nn.Dense(4, 4)
    network.up = nn.Conv2dTranspose(3, 3, 3, has_bias=True)
    network.turn = nn.GRU(4, 3)
    return network


def build_dense() -> Any:
    from mindspore import nn

    network = nn.Cell()
    network.first = nn.Dense(4, 4)
    return network
