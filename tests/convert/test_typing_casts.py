"""`typing.cast` is left out: the static graph refuses it."""

from __future__ import annotations

from tests.convert.support import port_of


def test_a_cast_is_its_value() -> None:
    port, findings = port_of("""
    import typing as t
    from typing import cast as said

    import torch
    from torch import nn


    def f(x: torch.Tensor, blocks: nn.ModuleList):
        for block in blocks:
            x = said(nn.Linear, block)(x) + t.cast("torch.Tensor", x + 1) * 2
        return x
    """)
    assert "x = block(x) + (x + 1) * 2" in port
    assert not findings
