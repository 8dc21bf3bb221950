"""Every hazard finds its bad examples and leaves its good ones alone."""

from __future__ import annotations

import pytest
from tests.scan.support import Scanner

from isograd.scan.hazards import CATALOG

BAD = [(code, i) for code, rule in CATALOG.items() for i in range(len(rule.bad))]
GOOD = [(code, i) for code, rule in CATALOG.items() for i in range(len(rule.good))]


def _codes(scanner: Scanner, code: str) -> list[str]:
    scanner.write(main=code)
    return [hazard.code for scan in scanner.scan().files for hazard in scan.hazards]


@pytest.mark.parametrize(("code", "position"), BAD)
def test_bad_examples(scanner: Scanner, code: str, position: int) -> None:
    assert code in _codes(scanner, CATALOG[code].bad[position])


@pytest.mark.parametrize(("code", "position"), GOOD)
def test_good_examples(scanner: Scanner, code: str, position: int) -> None:
    assert code not in _codes(scanner, CATALOG[code].good[position])


def test_every_rule_is_complete() -> None:
    for code, rule in CATALOG.items():
        assert rule.bad, code
        assert rule.good, code
        assert rule.message.endswith("."), code
        assert rule.advice.endswith("."), code


def test_hazards_of_each_use_are_told_once_per_file(scanner: Scanner) -> None:
    scanner.write(main="import torch.nn as nn\na = nn.Dropout(0.1)\nb = nn.Dropout(0.2)\n")
    (hazard,) = scanner.scan().files[0].hazards
    assert (hazard.code, hazard.line) == ("randomness", 2)
    assert hazard.message.endswith("2 uses in this file.")


def test_a_plain_network_has_no_hazard_of_every_device(scanner: Scanner) -> None:
    scanner.write(
        main="""
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv = nn.Conv2d(n, n, 3, padding=1)
        self.norm = nn.BatchNorm2d(n)
        self.scale = nn.Parameter(torch.ones(n, 1, 1))

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x))) * self.scale
        if self.training and y.shape[0] > 1:
            y += x
        b, c, h, w = y.shape
        y = y.view(b, c, h * w).transpose(1, 2)
        return y[:, : h * w // 2].mean(dim=1)
"""
    )
    assert [h for h in scanner.scan().files[0].hazards if not h.device] == []
