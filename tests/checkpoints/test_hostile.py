"""Files of strangers, as a user meets them: exit status 2, one message, nothing run or written."""

from __future__ import annotations

import json
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.checkpoints.conftest import tensors, write

from isograd.checkpoints.open import open_source
from isograd.cli import main
from isograd.errors import CheckpointError
from isograd.weights.torch_pickle import checkpoint_pickle

TEN_GIGABYTES = 10 << 30


def _zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def lying_torch(folder: Path) -> Path:
    described = [("w", "float32", (TEN_GIGABYTES // 4,), "0", TEN_GIGABYTES)]
    pickled = checkpoint_pickle(described)
    return _zip(folder / "a.pth", {"a/data.pkl": pickled, "a/data/0": b"x" * 100})


def compressed_storage(folder: Path) -> Path:
    pickled = checkpoint_pickle([("w", "float32", (1 << 20,), "0", 4 << 20)])
    members = {"a/data.pkl": pickled, "a/data/0": bytes(4 << 20)}
    return _zip(folder / "a.pth", members, zipfile.ZIP_DEFLATED)


def repeated_storage(folder: Path) -> Path:
    size = 1 << 22
    described = [(f"w{i}", "float32", (size // 4 - i,), "0", size) for i in range(40)]
    pickled = checkpoint_pickle(described)
    return _zip(folder / "a.pth", {"a/data.pkl": pickled, "a/data/0": bytes(size)})


def torch_script(folder: Path) -> Path:
    members = {"a/data.pkl": checkpoint_pickle([]), "a/constants.pkl": b"", "a/code/net.py": b""}
    return _zip(folder / "a.pt", members)


def lying_ckpt(folder: Path) -> Path:
    def varint(value: int) -> bytes:
        found = bytearray()
        while value > 127:
            found.append(value & 127 | 128)
            value >>= 7
        return bytes((*found, value))

    path = folder / "a.ckpt"
    path.write_bytes(b"\x0a" + varint(TEN_GIGABYTES) + b"\x0a\x01w" + b"x" * 900)
    return path


def lying_npy(folder: Path) -> Path:
    path = folder / "a.npy"
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2684354560,), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    return path


def object_npy(folder: Path) -> Path:
    path = folder / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return path


def cyclic_index(folder: Path) -> Path:
    path = folder / "model.safetensors.index.json"
    other = folder / "other.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"w": other.name}}))
    other.write_text(json.dumps({"weight_map": {"w": path.name}}))
    return path


def deep_json(folder: Path) -> Path:
    path = folder / "dump.json"
    path.write_text('{"data":' * 100_000)
    return path


def bomb(folder: Path) -> Path:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (10737418240,), }\n"
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    path = _zip(folder / "a.npz", {"w.npy": npy + bytes(1 << 20)}, zipfile.ZIP_DEFLATED)
    content = path.read_bytes()  # the directory announces what the header does
    real, announced = len(npy) + (1 << 20), len(npy) + TEN_GIGABYTES
    assert struct.pack("<I", real) in content
    return _announcing(path, content, real, announced & 0xFFFFFFFF)


def _announcing(path: Path, content: bytes, real: int, announced: int) -> Path:
    path.write_bytes(content.replace(struct.pack("<I", real), struct.pack("<I", announced)))
    return path


def self_link(folder: Path) -> Path:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "again").symlink_to(folder)
    (inner / "secret.npy").symlink_to("/etc/passwd")
    return inner


HOSTILE: list[Callable[[Path], Path]] = [
    lying_torch, compressed_storage, repeated_storage, torch_script, lying_ckpt, lying_npy,
    object_npy, cyclic_index, deep_json, bomb, self_link,
]  # fmt: skip


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_a_hostile_file_is_refused(
    make: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    started, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["params", str(path)]) == 2
    shown = capsys.readouterr()
    assert str(tmp_path) in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err) < 1000
    target = tmp_path / "target.ckpt"
    assert main(["weights", str(path), "-o", str(target)]) == 2
    assert sorted(tmp_path.rglob("*")) == before
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000


def test_one_bad_file_of_a_folder_loses_no_other(tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.ones(3))
    lying_npy(tmp_path).rename(tmp_path / "lying.npy")
    object_npy(tmp_path).rename(tmp_path / "object.npy")
    source = open_source(tmp_path)
    assert source.names() == ("good",)
    assert set(source.skipped) == {"lying.npy", "object.npy"}


def test_names_that_lead_elsewhere_are_only_names(tmp_path: Path) -> None:
    found = {"../../etc/x": np.ones(2, np.float32), "/root/y": np.ones(1, np.float32)}
    source = write(tmp_path / "a.safetensors", found)
    for suffix in ("npz", "pth", "ckpt"):
        target = tmp_path / "out" / f"b.{suffix}"
        target.parent.mkdir(exist_ok=True)
        assert main(["weights", str(source), "-o", str(target), "--to", "keep", "--quiet"]) == 0
        assert set(open_source(target).names()) == set(found)
        assert [path.name for path in target.parent.iterdir()] == [target.name]
        target.unlink()


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(1000))
    source = open_source(tmp_path)
    np.save(tmp_path / "a.npy", np.ones(10))
    with pytest.raises(CheckpointError, match="changed while"):
        source.read("a")


def test_every_tensor_of_a_sound_file_is_still_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pth", tensors())
    assert main(["params", str(path), "--quiet"]) == 0
