"""`isograd weights` as a user calls it: what is refused before anything is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from isograd.checkpoints.open import open_source
from isograd.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one checkpoint, in which the command is called."""
    monkeypatch.chdir(tmp_path)
    save_file(
        {
            "conv.weight": np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2),
            "bn.weight": np.ones(2, np.float32),
            "bn.bias": np.zeros(2, np.float32),
            "bn.running_mean": np.zeros(2, np.float32),
            "bn.running_var": np.ones(2, np.float32),
        },
        "a.safetensors",
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "a.safetensors"], "would be overwritten"),
        (["-o", "b.xyz"], "names no format"),
        (["-o", "no/b.ckpt"], "is no folder"),
        (["-o", "."], "is a folder"),
        (["-o", "/dev/null"], "is no regular file"),
        (["-o", "b.ckpt", "--json", "b.ckpt"], "would be overwritten"),
        (["-o", "b.ckpt", "--write-map", "b.ckpt"], "would be overwritten"),
        (["-o", "b.ckpt", "--rename", "x"], "is no OLD=NEW"),
        (["-o", "b.ckpt", "--rename", "x=y"], "neither a tensor nor a module"),
        (["-o", "b.ckpt", "--rename", "bn=conv"], "would be called 'conv.weight'"),
        (["-o", "b.ckpt", "--map", "a.safetensors"], "is no JSON"),
        (["-o", "b.ckpt", "--map", "m.json", "--part", "ema"], "--map decides"),
        (["-o", "b.ckpt", "--part", "ema"], "is no part of the source"),
        (["-o", "b.pth", "--crc"], "for .ckpt only"),
        (["-o", "shards", "--shard-size", "much"], "is no size"),
        (["-o", "a.safetensors", "--shard-size", "1MB"], "would be overwritten"),
        (["-o", "b.npz", "--into", "net.py:build"], "Add --to"),
        (["-o", "b.ckpt", "--into", "net.py"], "names no builder"),
        (["-o", "b.ckpt", "--into", "gone.py:build"], "does not exist"),
    ],
)
def test_wrong_calls(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "a.safetensors").read_bytes()
    assert main(["weights", "a.safetensors", *arguments]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown
    assert [path.name for path in folder.iterdir()] == ["a.safetensors"]
    assert (folder / "a.safetensors").read_bytes() == before


def test_a_target_that_is_there_is_replaced_only_with_force(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.ckpt").write_bytes(b"precious")
    call = ["weights", "a.safetensors", "-o", "b.ckpt"]
    assert main(call) == 2
    error = capsys.readouterr().err
    assert error == "isograd: b.ckpt is there already. Name another file, or replace it: --force.\n"
    assert (folder / "b.ckpt").read_bytes() == b"precious"
    assert main([*call, "--force"]) == 0
    assert len(open_source(folder / "b.ckpt")) == 5


def test_a_device_or_a_link_is_not_replaced(folder: Path) -> None:
    os.mkfifo(folder / "pipe.ckpt")
    assert main(["weights", "a.safetensors", "-o", "pipe.ckpt"]) == 2
    assert (folder / "pipe.ckpt").is_fifo()
    (folder / "real.ckpt").touch(0o600)
    (folder / "link.ckpt").symlink_to("real.ckpt")
    assert main(["weights", "a.safetensors", "-o", "link.ckpt", "--force"]) == 0
    assert (folder / "link.ckpt").is_symlink()
    assert len(open_source(folder / "real.ckpt")) == 5
    assert (folder / "real.ckpt").stat().st_mode & 0o777 == 0o600


def test_a_map_by_a_person(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["weights", "a.safetensors", "-o", "b.ckpt"]
    assert main([*call, "--to", "mindspore", "--write-map", "map.json"]) == 0
    found = json.loads((folder / "map.json").read_text())
    assert found["schema"] == "isograd/weights-map/1"
    entries = {entry["source"][0]: entry for entry in found["tensors"]}
    entries["conv.weight"] |= {
        "target": ["kernel"],
        "transform": {"kind": "transpose", "axes": [2, 3, 1, 0]},
    }
    found["tensors"] = [entry for name, entry in entries.items() if name != "bn.bias"]
    (folder / "map.json").write_text(json.dumps(found))
    capsys.readouterr()
    assert main([*call, "--map", "map.json", "--json", "-", "--force"]) == 1
    report = json.loads(capsys.readouterr().out)
    left = [item["name"] for item in report["dropped"] if item["needs_action"]]
    assert left == ["bn.bias"]
    assert open_source("b.ckpt").info("kernel").shape == (2, 2, 3, 2)
    entries["conv.weight"]["transform"] = {"kind": "split", "axis": 0, "sizes": [1, 5]}
    entries["conv.weight"]["target"] = ["one", "two"]
    (folder / "map.json").write_text(json.dumps(found))
    assert main([*call, "--map", "map.json", "--force"]) == 2
    assert "cannot be cut into" in capsys.readouterr().err
