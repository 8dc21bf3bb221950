"""One small checkpoint of each format, written by isograd or by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isograd.weights.blocks import bytes_of
from isograd.weights.writers import FORMATS, Entry, WriteOptions

Tensors = dict[str, np.ndarray]
Maker = Callable[[Path], Path]


def tensors() -> Tensors:
    """A few tensors of different dtypes and shapes."""
    return {
        "layer.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
        "layer.bias": np.array([1.5, -2.0, 0.0], np.float32),
        "half": np.array([[0.5]], np.float16),
        "count": np.array(7, np.int64),
        "flags": np.array([True, False]),
    }


def write(path: Path, found: Tensors) -> Path:
    """Write tensors in the format of the suffix."""
    entries = [Entry(n, str(a.dtype), a.shape, a.nbytes) for n, a in found.items()]
    blocks = (iter([bytes_of(array)]) for array in found.values())
    with path.open("wb") as file:
        FORMATS[path.suffix][0](file, entries, zip(entries, blocks, strict=True), WriteOptions())
    return path


def make_legacy(folder: Path) -> Path:
    """A file as torch wrote it before 1.6: one float32 tensor named `w`."""

    def text(value: str) -> bytes:
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    version = b"\x80\x02M\xe9\x03."
    system = b"\x80\x02}" + text("little_endian") + b"\x88s."
    storage = (
        b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("7") + text("cpu") + b"K\x04NtQ"
    )
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + b"K\x00K\x02K\x02\x86K\x02K\x01\x86\x89ccollections\nOrderedDict\n)RtR"
    )
    root = b"\x80\x02}" + text("w") + tensor + b"s."
    keys = b"\x80\x02]" + text("7") + b"a."
    values = np.arange(4, dtype=np.float32)
    body = (4).to_bytes(8, "little") + values.tobytes()
    path = folder / "legacy.pth"
    path.write_bytes(magic + version + system + root + keys + body)
    return path


def make_index(folder: Path) -> Path:
    """Two shards and their index."""
    found = tensors()
    names = list(found)
    places = {}
    for number, part in enumerate((names[:2], names[2:])):
        file = f"model-{number}.safetensors"
        write(folder / file, {name: found[name] for name in part})
        places.update(dict.fromkeys(part, file))
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return path


def make_npy(folder: Path) -> Path:
    path = folder / "one.npy"
    np.save(path, tensors()["layer.weight"])
    return path


def make_compressed(folder: Path) -> Path:
    path = folder / "packed.npz"
    np.savez_compressed(path, **tensors())
    return path


def make_binary_dump(folder: Path) -> Path:
    from tests.checkpoints.test_dumps import NEW_NAME, X, Y, binary_dump, plain

    path = folder / NEW_NAME
    path.write_bytes(binary_dump([plain(X, 1)], [plain(Y, 2)]))
    return path


def make_msprobe(folder: Path) -> Path:
    data = folder / "dump_tensor_data"
    data.mkdir()
    slots = []
    for slot, (name, array) in enumerate(tensors().items()):
        file = f"Cell.{name}.forward.{slot}.npy"
        np.save(data / file, array)
        slots.append({"type": "mindspore.Tensor", "data_name": file})
    path = folder / "dump.json"
    path.write_text(json.dumps({"task": "tensor", "data": {"Cell.a.forward.0": {"output": slots}}}))
    return path


MAKERS: dict[str, Maker] = {
    "pth": lambda folder: write(folder / "a.pth", tensors()),
    "legacy": make_legacy,
    "ckpt": lambda folder: write(folder / "a.ckpt", tensors()),
    "safetensors": lambda folder: write(folder / "a.safetensors", tensors()),
    "index": make_index,
    "npz": lambda folder: write(folder / "a.npz", tensors()),
    "compressed npz": make_compressed,
    "npy": make_npy,
    "binary dump": make_binary_dump,
    "msprobe": make_msprobe,
}


@pytest.fixture(params=MAKERS)
def any_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A sound file of each format."""
    return MAKERS[request.param](tmp_path)
