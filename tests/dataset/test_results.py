"""What was found as Parquet, and files that neither side can decode."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import isograd
from isograd.cli import main
from isograd.data.model import Verdict


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A flat folder of three images."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        picture = np.full((4, 5, 3), 50 * number, np.uint8)
        Image.fromarray(picture).save(folder / f"{number}.png")
    return folder


@pytest.mark.parametrize(
    ("is_pair", "wanted"),
    [
        pytest.param(False, {"field": "image", "channel": "0", "maximum": 100.0}, id="inventory"),
        pytest.param(True, {"field_a": "image", "same": 3, "differs": 0}, id="comparison"),
    ],
)
def test_results_are_a_table(images: Path, tmp_path: Path, is_pair: bool, wanted: object) -> None:
    from pyarrow import parquet

    file = tmp_path / "found.parquet"
    sources = [str(images)] * (2 if is_pair else 1)
    assert main(["data", *sources, "--quiet", "--parquet", str(file)]) == 0
    rows = parquet.read_table(io.BytesIO(file.read_bytes())).to_pylist()
    assert isinstance(wanted, dict)
    found = [{name: row[name] for name in wanted} for row in rows]
    assert wanted in found


def test_a_file_that_neither_side_can_decode_is_not_the_same(images: Path) -> None:
    whole = (images / "1.png").read_bytes()
    (images / "1.png").write_bytes(whole[:40])
    report = isograd.data(images, images)
    assert report.verdict is Verdict.INCOMPLETE
    assert report.comparison is not None
    (image,) = [one for one in report.comparison.fields if one.name == "image"]
    assert (image.same, image.differs) == (2, 0)
    assert any("neither side can be decoded in 1 of 3" in gap for gap in report.comparison.gaps)


def test_a_sample_in_two_addresses_that_are_splits_is_a_leak(images: Path, tmp_path: Path) -> None:
    other = tmp_path / "val"
    other.mkdir()
    own = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    Image.fromarray(own).save(other / "own.png")
    clean = isograd.data(images, against=other)
    assert "data.leak" not in {one.code for one in clean.sources[0].findings}
    (other / "copy.png").write_bytes((images / "2.png").read_bytes())
    report = isograd.data(images, against=other)
    (leak,) = [one for one in report.sources[0].findings if one.code == "data.leak"]
    assert "1 sample stands in more than one split" in leak.message
    assert any("2.png" in line and "copy.png" in line for line in leak.evidence)
    assert report.sources[0].splits == {str(images): 3, str(other): 2}
