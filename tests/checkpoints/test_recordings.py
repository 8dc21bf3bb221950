"""Recordings as sources of tensors, and reading without any framework."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.checkpoints.conftest import MAKERS

import isograd
from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError

SOURCES = Path(isograd.__file__).parents[1]


def test_a_recording_is_read_in_the_order_of_its_calls(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    x = torch.randn(2, 4)
    with isograd.record(model, tmp_path / "r", tensors="full") as recorder:
        model(x).sum().backward()
        recorder.step()
    source = open_source(tmp_path / "r")
    assert source.kind == "recording"
    outputs = [name for name in source.names() if ".output." in name and "gradient" not in name]
    assert [name.partition("#")[0] for name in outputs[:3]] == ["0/network", "0/0", "0/1"]
    expected = model[0](x).detach().numpy()
    np.testing.assert_array_equal(source.read(outputs[1]).values, expected)
    assert all(info.order is not None for info in source)
    for file in (tmp_path / "r" / "steps" / "000000").glob("tensors-*"):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointError):
        open_source(tmp_path / "r").read(outputs[1])


def test_no_framework_is_imported(tmp_path: Path) -> None:
    paths = [str(make(tmp_path)) for make in MAKERS.values()]
    code = (
        "import sys\n"
        "from isograd.checkpoints.open import open_source\n"
        f"for path in {paths!r}:\n"
        "    with open_source(path) as source:\n"
        "        [source.read(name) for name in source.names()]\n"
        "print([n for n in ('torch', 'mindspore', 'tensorflow') if n in sys.modules])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_a_url_is_fetched(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    path = MAKERS["safetensors"](tmp_path)
    fsspec.filesystem("memory").pipe_file("/folder/a.safetensors", path.read_bytes())
    for url in ("memory://folder/a.safetensors", "memory://folder", f"file://{path}"):
        assert open_source(url).names() == open_source(path).names()
    with pytest.raises(CheckpointError, match="cannot be read"):
        open_source("memory://gone.safetensors")


def test_shards_behind_a_url_are_fetched_with_their_index(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    index = MAKERS["index"](tmp_path)
    memory = fsspec.filesystem("memory")
    for file in tmp_path.iterdir():
        memory.pipe_file(f"/sharded/{file.name}", file.read_bytes())
    source = open_source(f"memory://sharded/{index.name}")
    assert source.names() == open_source(index).names()
    np.testing.assert_array_equal(source.read("count").values, 7)
    dump = MAKERS["msprobe"](tmp_path)
    for file in (dump, *(tmp_path / "dump_tensor_data").iterdir()):
        memory.pipe_file(f"/dump/{file.relative_to(tmp_path)}", file.read_bytes())
    assert open_source("memory://dump/dump.json").names() == open_source(dump).names()
