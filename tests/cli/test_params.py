"""`isograd params` as a user calls it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from isograd.cli import main

HOSTILE = "<script>alert(1)</script>.[red]x\u202e"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    path = tmp_path / "a.safetensors"
    save_file(
        {
            f"{HOSTILE}.weight": generator.standard_normal((4, 3)).astype(np.float32),
            "bn.running_var": np.array([1.0, -0.5], np.float32),
            "bn.running_mean": np.zeros(2, np.float32),
            "bn.weight": np.array([1.0, 0.0], np.float32),
            "count": np.array(3),
        },
        path,
    )
    return path


def test_every_output(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"r.{kind}" for kind in ("json", "csv", "html")}
    options = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    assert main(["params", str(checkpoint), *options]) == 1
    shown = capsys.readouterr().out
    assert "bn.running_var: a variance is negative: -0.5" in shown
    assert "bn.weight: 1 of 2 scales are 0" in shown
    assert "5 do not train" in shown
    assert "\u202e" not in shown
    found = json.loads(files["json"].read_text())
    assert found["schema"] == "isograd/params/1"
    assert found["files"][0]["frozen"] == 5
    rows = {row["name"]: row for row in csv.DictReader(files["csv"].open(newline=""))}
    assert rows["bn.running_var"]["findings"] == "params.variance"
    assert rows["count"]["trainable"] == "False"
    page = files["html"].read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_two_steps(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "b.safetensors"
    weights = np.full((4, 3), 0.5, np.float32)
    for path, step in ((checkpoint, 0.0), (other, 0.25)):
        weights[0] += np.float32(step)
        save_file({"a.weight": weights, "b.weight": np.eye(3, dtype=np.float32)}, path)
    page = tmp_path / "r.html"
    main(["params", str(checkpoint), str(other), "--html", str(page)])
    shown = capsys.readouterr().out
    assert "params.unchanged  b.weight: did not change between the two" in shown
    assert "a.weight: 0.125 of its mean size" in shown
    assert "0.125" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.pth"], "does not exist"),
        (["a.safetensors", "--json", "a.safetensors"], "would be overwritten"),
        (["a.safetensors", "--html", "-"], "cannot write to standard output"),
        (["a.safetensors", "--json", "-", "--csv", "-"], "two reports"),
        (["a.safetensors", "--csv", "no/such/folder.csv"], "cannot be written"),
    ],
)
def test_wrong_calls(
    arguments: list[str],
    words: str,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(checkpoint.parent)
    before = checkpoint.read_bytes()
    assert main(["params", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert checkpoint.read_bytes() == before
