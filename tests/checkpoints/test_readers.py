"""Each reader gives back what was written, and refuses what is hostile."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.checkpoints.conftest import make_index, make_legacy, tensors, write

from isograd.checkpoints.dtypes import decoded
from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError


@pytest.mark.parametrize("suffix", [".pth", ".ckpt", ".safetensors", ".npz"])
def test_round_trip(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a{suffix}", tensors())
    path = path.rename(tmp_path / "no-suffix")
    with open_source(path) as source:
        assert source.names() == tuple(tensors())
        for name, expected in tensors().items():
            found = source.read(name)
            assert found.dtype == str(expected.dtype)
            np.testing.assert_array_equal(found.values, expected, strict=True)


def test_a_legacy_file(tmp_path: Path) -> None:
    source = open_source(make_legacy(tmp_path))
    assert source.kind == "torch (legacy)"
    np.testing.assert_array_equal(source.read("w").values, [[0, 1], [2, 3]])


def test_shards(tmp_path: Path) -> None:
    index = make_index(tmp_path)
    for path in (index, tmp_path):
        source = open_source(path)
        assert set(source.names()) == set(tensors())
        np.testing.assert_array_equal(source.read("count").values, 7)


def test_shards_of_torch(tmp_path: Path) -> None:
    found = tensors()
    names = list(found)
    for number, part in enumerate((names[:2], names[2:])):
        path = write(tmp_path / f"{number}.pth", {name: found[name] for name in part})
        path.rename(tmp_path / f"pytorch_model-{number}.bin")
    places = {name: f"pytorch_model-{int(name not in names[:2])}.bin" for name in names}
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    for path in (index, tmp_path):
        source = open_source(path)
        assert source.kind == "torch, sharded"
        assert source.verify()
        np.testing.assert_array_equal(source.read("count").values, 7)


@pytest.mark.parametrize("suffix", [".npz", ".ckpt", ".safetensors", ".pth"])
def test_stored_bits_are_those_that_are_read(suffix: str, tmp_path: Path) -> None:
    source = open_source(write(tmp_path / f"a{suffix}", tensors()))
    for name in source.names():
        np.testing.assert_array_equal(source.stored(name).bits, source.raw(name).bits, strict=True)
        assert source.raw(name).bits.flags.aligned


@pytest.mark.parametrize(
    ("code", "expected"),
    [(0x00, 0.0), (0x38, 1.0), (0x7E, 448.0), (0x7F, np.nan), (0x01, 2.0**-9), (0xB8, -1.0)],
)
def test_float8_e4m3fn(code: int, expected: float) -> None:
    found = decoded(np.array([code], np.uint8), "float8_e4m3fn").values
    np.testing.assert_array_equal(found, np.array([expected], np.float32))


@pytest.mark.parametrize(
    ("code", "expected"),
    [(0x3C, 1.0), (0x7C, np.inf), (0xFC, -np.inf), (0x7B, 57344.0), (0x7D, np.nan)],
)
def test_float8_e5m2(code: int, expected: float) -> None:
    found = decoded(np.array([code], np.uint8), "float8_e5m2").values
    np.testing.assert_array_equal(found, np.array([expected], np.float32))


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("executed",)


def _zip_with(path: Path, pickled: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
    return path


@pytest.mark.parametrize("protocol", range(2, 6))
def test_code_is_refused_by_name(
    protocol: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _zip_with(tmp_path / "evil.pth", pickle.dumps({"w": _Evil()}, protocol))
    with pytest.raises(CheckpointError, match="print'") as caught:
        open_source(path)
    assert "runs no code" in caught.value.advice
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01h\x00s.",  # a dictionary that holds itself
        b"\x80\x02r\xff\xff\xff\xff.",  # a memo of 4 billion places
        b"\x80\x04\x8e" + (10 << 30).to_bytes(8, "little") + b"x.",  # 10 GB of bytes
        b"\x80\x02" + b"(" * 100_000 + b".",
        b"\x80\x02]" * 100_000 + b"a" * 99_999 + b".",  # a list 100,000 deep
        b"\x80\x02ctorch\nFloatStorage\n)R.",
        b"",
        b".",
    ],
)
def test_hostile_pickles(pickled: bytes, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        open_source(_zip_with(tmp_path / "a.pth", pickled))


def test_shared_lists_do_not_explode(tmp_path: Path) -> None:
    bomb: list[object] = ["x"] * 10
    for _ in range(40):
        bomb = [bomb] * 10
    with pytest.raises(CheckpointError, match="more values than"):
        open_source(_zip_with(tmp_path / "a.pth", pickle.dumps(bomb, 2)))


@pytest.mark.parametrize("size", [10, 128, 0x280, 0x4B50, 0x2E80])
def test_a_header_whose_size_looks_like_another_format(size: int, tmp_path: Path) -> None:
    fields = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}} if size > 60 else {}
    text = json.dumps(fields).encode().ljust(size)
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", size) + text + b"\0" * (4 if fields else 0))
    assert open_source(path).kind == "safetensors"


def test_a_header_of_ten_gigabytes(tmp_path: Path) -> None:
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [2_500_000_000], "data_offsets": [0, 10_000_000_000]}}
    ).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"0" * 500)
    with pytest.raises(CheckpointError, match="announces"):
        open_source(path)
    path.write_bytes(struct.pack("<Q", 10 << 30) + header)
    with pytest.raises(CheckpointError):
        open_source(path)


def test_a_npz_that_announces_ten_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2500000000,), }\n"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", npy + b"0" * 1000)
    with pytest.raises(CheckpointError, match="does not fit"):
        open_source(path)


@pytest.mark.parametrize("file", ["../a.safetensors", "/etc/passwd", "", 3, "a/b.safetensors"])
def test_an_index_stays_in_its_folder(file: object, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"w": file}}))
    with pytest.raises(CheckpointError, match="no file beside it"):
        open_source(path)


def test_links_out_of_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside / "s.safetensors", tensors())
    np.save(outside / "x.npy", np.ones(3))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "s.safetensors").symlink_to(outside / "s.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"count": "s.safetensors"}}))
    with pytest.raises(CheckpointError, match="a link out of its folder"):
        open_source(index)
    index.unlink()
    (folder / "s.safetensors").unlink()
    (folder / "x.npy").symlink_to(outside / "x.npy")
    with pytest.raises(CheckpointError, match="it is a link"):
        open_source(folder)


def test_names_with_markup_stay_names(tmp_path: Path) -> None:
    found = {"../../<b>x</b>": np.ones(2, np.float32), "[red]y": np.ones(1, np.float32)}
    source = open_source(write(tmp_path / "a.safetensors", found))
    assert source.names() == tuple(found)


def test_a_flipped_bit_is_found_by_the_checksum(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pth", tensors())
    content = bytearray(path.read_bytes())
    place = content.find(tensors()["layer.weight"].tobytes())
    content[place + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        open_source(path).verify()


def test_a_folder_of_arrays_with_subfolders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "a.npy", np.ones(2))
    np.save(tmp_path / "sub" / "b.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    (tmp_path / "bad.npy").write_bytes(b"no array")
    source = open_source(tmp_path)
    assert source.names() == ("a", "sub/b")
    assert "bad.npy" in source.skipped
    np.testing.assert_array_equal(source.read("sub/b").values, np.arange(6).reshape(2, 3))


def test_a_dump_of_mindspore_is_in_the_order_of_time(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "Net" / "0" / "1"
    folder.mkdir(parents=True)
    names = [
        "ReLU.Default_fc-ReLU-op1.0.0.1795241930242999.output.0.DefaultFormat.Float32",
        "MatMul.Default_fc-MatMul-op0.0.0.1795241930242683.input.0.DefaultFormat.Float32",
        "MatMul.Default_fc-MatMul-op0.0.0.1795241930242683.output.0.DefaultFormat",
        "MatMul.Default_fc-MatMul-op0.0.0.1795241930243683.output.0",
    ]
    for number, name in enumerate(names):
        np.save(folder / f"{name}.npy", np.full(2, number, np.float32))
    source = open_source(tmp_path / "rank_0")
    place = "Net/0/1/Default_fc"
    assert source.kind == "MindSpore dump"
    assert source.names() == (
        f"{place}-MatMul-op0.input.0",
        f"{place}-MatMul-op0.output.0",
        f"{place}-ReLU-op1.output.0",
        f"{place}-MatMul-op0.output.0@1",
    )
    assert [info.order for info in source] == [0, 1, 2, 3]


def test_a_folder_of_troubleshooter(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        np.save(tmp_path / f"{number}_conv{number}.npy", np.full(1, number))
    assert open_source(tmp_path).names() == ("0_conv0", "2_conv2", "10_conv10")


def test_a_folder_of_tensor_dump(tmp_path: Path) -> None:
    for number, name in ((2, "div_out"), (10, "mul"), (0, "add")):
        np.save(tmp_path / f"{name}_float32_{number}.npy", np.full(1, number))
    source = open_source(tmp_path)
    assert source.names() == ("add_float32_0", "div_out_float32_2", "mul_float32_10")
    assert [info.order for info in source] == [0, 1, 2]


def test_a_dump_of_msprobe(tmp_path: Path) -> None:
    folder = tmp_path / "dump_tensor_data"
    folder.mkdir()
    np.save(folder / "Cell.fc.Dense.forward.0.input.0.npy", np.ones(3, np.float32))
    write(folder / "other.pt", {"tensor": np.zeros(2, np.float32)})
    slots = [
        {"data_name": "Cell.fc.Dense.forward.0.input.0.npy"},
        {"data_name": "other.pt"},
        {"data_name": "../../secret.npy"},
        {"data_name": "gone.npy"},
    ]
    data = {"Cell.fc.Dense.forward.0": {"input_args": slots}}
    (tmp_path / "dump.json").write_text(json.dumps({"task": "tensor", "data": data}))
    source = open_source(tmp_path)
    assert source.names() == ("Cell.fc.Dense.forward.0.input.0", "other")
    assert [info.order for info in source] == [0, 1]
    assert len(source.skipped) == 2


def test_what_is_no_file_of_tensors(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "empty").touch()
    for path, words in (
        (tmp_path / "a.txt", "no file of tensors"),
        (tmp_path / "empty", "is empty"),
        (tmp_path / "gone", "does not exist"),
    ):
        with pytest.raises(CheckpointError, match=words):
            open_source(path)
