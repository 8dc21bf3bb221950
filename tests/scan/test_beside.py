"""A large project is scanned with the help of a fork, and found to be the same as without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isograd.scan import run
from isograd.scan.model import ScanReport

NETWORK = """
from torch import nn

from {before} import scaled


class Net{number}(nn.Module):
    def forward(self, x):
        try:
            return scaled(x).numpy()
        finally:
            pass
"""


def scanned(folder: Path) -> ScanReport:
    """Without the time that it took."""
    return replace(run.scan_path(folder, use_cache=False), elapsed_s=0.0)


def test_hazards_from_a_fork_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net0.py").write_text("def scaled(x):\n    return x * 2\n", encoding="utf-8")
    for number in range(1, 9):
        text = NETWORK.format(number=number, before="net0")
        (tmp_path / f"net{number}.py").write_text(text, encoding="utf-8")
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    alone = scanned(tmp_path)
    asked = []

    def beside(function, items, *, is_long):  # type: ignore[no-untyped-def]
        asked.append(is_long)
        return iter(list(map(function, items)))

    monkeypatch.setattr(run, "_FORKED_BYTES", 0)
    monkeypatch.setattr(run, "forked_beside", beside)
    assert scanned(tmp_path) == alone
    assert asked == [True]
    assert sum(len(file.hazards) for file in alone.files) >= 8
    assert [problem.file for problem in alone.problems] == ["broken.py"]
