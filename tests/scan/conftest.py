"""Scans of code in strings and small projects, with a cache folder of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scan.support import Scanner

from isograd.knowledge.entry import Applicability, Entry, Status, Verified, Way
from isograd.knowledge.store import Knowledge

_RAN = Verified("2.13.0", "2.10.0", "CPU", forward=True, gradient=True)


@pytest.fixture
def knowledge() -> Knowledge:
    return Knowledge(
        (
            Entry("torch.nn.Conv2d", Status.DIFFERS, "mindspore.nn.Conv2d", verified=_RAN,
                  difference="pad_mode is 'same' by default",
                  applicability=Applicability.LOOK),
            Entry("torch.cat", Status.SUPPORTED, "mindspore.ops.cat", aliases=("torch.concat",),
                  verified=_RAN),
            Entry("torch.Tensor.view", Status.SUPPORTED, "mindspore.Tensor.view", verified=_RAN),
            Entry("torch.igamma", Status.MISSING, way=Way.CUSTOM, advice="Write ops.Custom."),
        )
    )  # fmt: skip


@pytest.fixture
def scanner(tmp_path: Path, knowledge: Knowledge) -> Scanner:
    folder = tmp_path / "project"
    folder.mkdir()
    return Scanner(folder, knowledge)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
