"""The fake adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path

from isograd.frameworks.base import Framework, SideSpec
from isograd.frameworks.registry import open_framework
from isograd.testing import FrameworkConformance, side_of

DATA = Path(__file__).resolve().parent.parent / "data"


class TestFake(FrameworkConformance):
    """All guarantees."""

    def open(self) -> Framework:
        return open_framework("fake")

    def side(self) -> SideSpec:
        return side_of("fake", DATA / "conformance_fake.py")
