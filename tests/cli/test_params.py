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
    assert "bn.running_var: a variance is negative: -0.5 [params.variance]" in shown
    assert "bn.weight: 1 of 2 scales are 0 [params.dead]" in shown
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
    assert "b.weight: did not change between the two [params.unchanged]" in shown
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


@pytest.fixture
def training(tmp_path: Path) -> list[Path]:
    """Two checkpoints of one training, with the states of its optimizer beside the network."""
    paths = []
    for step in (1, 2):
        weights = {
            "fc.weight": np.arange(1, 13, dtype=np.float32).reshape(4, 3) + 1e-3 * step,
            "bn.weight": np.full(4, 1.0 - 1e-3 * step, np.float32),
        }
        squares = {
            f"moment2.{name}": np.full_like(value, 1e-16 * step) for name, value in weights.items()
        }
        paths.append(tmp_path / f"step{step}.safetensors")
        save_file({**weights, **squares}, paths[-1])
    return paths


def test_states_of_an_optimizer_stand_beside_the_network(
    training: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "r.json"
    assert main(["params", str(training[0]), "--json", str(report)]) == 0
    found = json.loads(report.read_text())
    assert found["findings"] == [], "the squares of Adam are small by their nature"
    assert {share["name"] for share in found["files"][0]["by_module"]} == {"fc", "bn"}
    shown = capsys.readouterr().out
    shares = shown.split("Share by module")[1].split("Beside the network")[0]
    assert "75.0 %" in shares
    assert "moment2" not in shares


def test_all_shows_every_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.safetensors"
    save_file({f"layer{k}.weight": np.eye(2, dtype=np.float32) for k in range(30)}, path)
    main(["params", str(path)])
    assert "and 10 more in --json" in capsys.readouterr().out
    main(["params", str(path), "--all"])
    shown = capsys.readouterr().out
    assert "more in --json" not in shown
    assert shown.count(".weight") >= 30


@pytest.mark.parametrize("verb", ["params", "compare", "weights", "verify"])
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("a" * 300, id="name too long"),
        pytest.param("file/inside", id="folder is a file"),
        pytest.param("locked/net.pth", id="no permission"),
    ],
)
def test_a_path_that_cannot_be_looked_at_is_one_message(
    verb: str,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    real = Path.stat

    def stat(self: Path, **options: bool) -> object:
        if "locked" in self.parts:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    more = {"compare": ["file"], "weights": ["-o", "out.npz"]}.get(verb, [])
    assert main([verb, path, *more]) == 2
    error = capsys.readouterr().err
    assert "internal error" not in error
    assert error.startswith("isograd: ")
    assert path in error
    assert error.count("\n") == 1
