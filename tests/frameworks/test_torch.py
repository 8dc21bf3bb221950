"""The torch adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.frameworks.base import Framework, SideSpec
from isograd.frameworks.registry import open_framework
from isograd.testing import FrameworkConformance, side_of

DATA = Path(__file__).resolve().parent.parent / "data"


class TestTorch(FrameworkConformance):
    """All guarantees."""

    def open(self) -> Framework:
        pytest.importorskip("torch")
        return open_framework("torch")

    def side(self) -> SideSpec:
        return side_of("torch", DATA / "conformance_torch.py")
