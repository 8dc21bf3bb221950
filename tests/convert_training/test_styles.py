"""Other ways to write a training loop: each port prints what its original prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

STYLES = sorted((Path(__file__).parent / "styles").glob("*.py"))
WELL_KNOWN = sorted((Path(__file__).parents[2] / "benchmarks/convert/styles").glob("*.py"))


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_style_follows_its_original(path: Path, tmp_path: Path) -> None:
    converted = assert_follows(path.read_text(encoding="utf-8"), tmp_path, tolerance=2e-5)
    assert re.search(r"import torch\b", converted.text) is None


@pytest.mark.parametrize("path", WELL_KNOWN, ids=lambda path: path.stem)
def test_well_known_style_has_a_compiled_step(path: Path, tmp_path: Path) -> None:
    converted = convert(path.read_text(encoding="utf-8"), tmp_path)
    eager = [f.message for f in converted.report.findings if f.code == "eager-training"]
    assert (eager, "@ms.jit" in converted.text) == ([], True)
