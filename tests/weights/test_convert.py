"""Checkpoints written as others: names, layouts, ties, casts, maps, and atomic writes."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.open import open_source
from isograd.cli import main
from isograd.errors import CheckpointError, UsageError
from isograd.pairing.transforms import Concatenate, Split, Transpose
from isograd.weights import convert as conversion
from isograd.weights.blocks import bytes_of
from isograd.weights.casts import cast
from isograd.weights.convert import convert
from isograd.weights.map_file import map_text, read_map
from isograd.weights.model import Move, Plan
from isograd.weights.plan import make_plan
from isograd.weights.writers import FORMATS, Entry, WriteOptions

Tensors = dict[str, np.ndarray]


def network() -> Tensors:
    """The state of a network with a layer of each kind whose names or layouts differ."""
    generator = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    return {
        "conv.weight": draw(4, 3, 3, 3),
        "bn.weight": draw(4),
        "bn.bias": draw(4),
        "bn.running_mean": draw(4),
        "bn.running_var": draw(4) ** 2,
        "bn.num_batches_tracked": np.array(3, np.int64),
        "ln.weight": draw(5),
        "ln.bias": draw(5),
        "embedding.weight": draw(7, 5),
        "conv1.weight": draw(3, 2, 4),
        "conv1.bias": draw(3),
    }


def write(path: Path, found: Tensors, ties: dict[str, str] | None = None) -> Path:
    entries = [
        Entry(n, str(a.dtype), a.shape, a.nbytes, (ties or {}).get(n)) for n, a in found.items()
    ]
    blocks = (iter([bytes_of(array)]) for array in found.values())
    with path.open("wb") as file:
        FORMATS[path.suffix][0](file, entries, zip(entries, blocks, strict=True), WriteOptions())
    return path


def test_to_mindspore_and_back(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pth", network())
    source = open_source(path)
    plan = make_plan(source, "mindspore", rename={})
    report = convert(source, tmp_path / "a.ckpt", plan)
    assert report.verified
    assert not report.needs_action
    assert [dropped.name for dropped in plan.dropped] == ["bn.num_batches_tracked"]
    port = open_source(tmp_path / "a.ckpt")
    assert port.names() == (
        "conv.weight",
        "bn.gamma",
        "bn.beta",
        "bn.moving_mean",
        "bn.moving_variance",
        "ln.gamma",
        "ln.beta",
        "embedding.embedding_table",
        "conv1.weight",
        "conv1.bias",
    )
    assert port.info("conv1.weight").shape == (3, 2, 1, 4)
    convert(port, tmp_path / "b.pth", make_plan(port, "torch", rename={}))
    back = open_source(tmp_path / "b.pth")
    for name in back.names():
        np.testing.assert_array_equal(
            back.read(name).values.ravel(), network()[name].ravel(), strict=True
        )


def test_the_frameworks_read_what_was_written(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    mindspore = pytest.importorskip("mindspore")
    path = write(tmp_path / "a.pth", network())
    loaded = torch.load(path, weights_only=True)
    assert {name: tuple(tensor.shape) for name, tensor in loaded.items()} == {
        name: array.shape for name, array in network().items()
    }
    source = open_source(path)
    convert(source, tmp_path / "a.ckpt", make_plan(source, "mindspore", rename={}))
    found = mindspore.load_checkpoint(str(tmp_path / "a.ckpt"))
    np.testing.assert_array_equal(found["ln.gamma"].asnumpy(), network()["ln.weight"])


def test_what_the_frameworks_write_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    mindspore = pytest.importorskip("mindspore")
    weight = torch.arange(12.0).reshape(3, 4)
    state = {"a": weight, "b": weight.t(), "tied": weight, "half": weight.bfloat16()}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "a.pth")
    torch.save(state, tmp_path / "b.pth", _use_new_zipfile_serialization=False)
    for name in ("a.pth", "b.pth"):
        source = open_source(tmp_path / name)
        assert source.names() == ("a", "b", "tied", "half")
        assert source.info("tied").tied_to == "a"
        np.testing.assert_array_equal(source.read("b").values, weight.numpy().T)
        assert source.read("half").dtype == "bfloat16"
    parameters = [
        {"name": "w", "data": mindspore.Tensor(weight.numpy())},
        {"name": "scalar", "data": mindspore.Tensor(3, mindspore.int32)},
        {"name": "half", "data": mindspore.Tensor(weight.numpy()).astype(mindspore.bfloat16)},
    ]
    path = tmp_path / "a.ckpt"
    mindspore.save_checkpoint(parameters, str(path), crc_check=True)
    source = open_source(path)
    assert source.verify()
    assert source.info("scalar").shape == ()
    np.testing.assert_array_equal(source.read("w").values, weight.numpy())
    content = bytearray(path.read_bytes())
    content[content.find(weight.numpy().tobytes()) + 4] ^= 1
    (tmp_path / "flipped.ckpt").write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum"):
        open_source(tmp_path / "flipped.ckpt").verify()


def test_large_parameters_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isograd.weights.writers.RECORD_BYTES", 40)
    path = write(tmp_path / "a.ckpt", network())
    source = open_source(path)
    np.testing.assert_array_equal(
        source.read("conv.weight").values, network()["conv.weight"], strict=True
    )


@pytest.mark.parametrize("suffix", [".pth", ".npz"])
def test_members_beyond_32_bits(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of more than 2 GiB has its size in an extra field, which moves its bytes."""
    monkeypatch.setattr("zipfile.ZIP64_LIMIT", 200)
    path = write(tmp_path / f"a{suffix}", network())
    monkeypatch.undo()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        sizes = [info.file_size for info in archive.infolist()]
    assert max(sizes) > 200 > min(sizes)
    source = open_source(path)
    for name, expected in network().items():
        np.testing.assert_array_equal(source.read(name).values, expected, strict=True)
    if suffix == ".npz":
        with np.load(path) as found:
            np.testing.assert_array_equal(found["conv.weight"], network()["conv.weight"])
    else:
        torch = pytest.importorskip("torch")
        found = torch.load(path, weights_only=True)
        np.testing.assert_array_equal(found["conv.weight"].numpy(), network()["conv.weight"])


def test_ties_are_kept_where_the_format_can(tmp_path: Path) -> None:
    found = {"a.weight": np.ones((2, 3), np.float32), "b.weight": np.ones((2, 3), np.float32)}
    path = write(tmp_path / "a.pth", found, {"b.weight": "a.weight"})
    source = open_source(path)
    assert source.info("b.weight").tied_to == "a.weight"
    report = convert(source, tmp_path / "b.pth", make_plan(source, "torch", rename={}))
    assert report.ties == (("b.weight", "a.weight"),)
    assert open_source(tmp_path / "b.pth").info("b.weight").tied_to == "a.weight"
    convert(source, tmp_path / "c.safetensors", make_plan(source, None, rename={}))
    assert open_source(tmp_path / "c.safetensors").names() == ("a.weight", "b.weight")


def test_a_tied_matrix_that_may_be_an_embedding_is_named(tmp_path: Path) -> None:
    found = {"tok.weight": np.ones((2, 3), np.float32), "out.weight": np.ones((2, 3), np.float32)}
    source = open_source(write(tmp_path / "a.pth", found, {"out.weight": "tok.weight"}))
    (note,) = make_plan(source, "mindspore").notes
    assert note.startswith("tok.weight and out.weight are one matrix")


@pytest.mark.parametrize(
    ("target", "overflowed", "flushed"), [("float16", 2, 1), ("bfloat16", 1, 0), ("float64", 0, 0)]
)
def test_casts_count_what_is_lost(target: str, overflowed: int, flushed: int) -> None:
    values = np.array([1.0, 70000.0, 3.4e38, np.inf, np.nan, 1e-30, 0.0], np.float32)
    made, loss = cast("w", RawTensor(values, "float32"), target)
    assert loss is not None
    assert (loss.overflowed, loss.flushed) == (overflowed, flushed)
    assert made.dtype == target


def test_bfloat16_rounds_to_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001], np.uint32).view(np.float32)
    made, _ = cast("w", RawTensor(bits, "float32"), "bfloat16")
    assert made.bits.tolist() == [0x3F80, 0x3F82, 0x3F81]


def test_a_map_is_used_again(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.pth", network()))
    plan = make_plan(source, "mindspore", rename={"conv": "stem.conv"})
    (tmp_path / "map.json").write_text(map_text(plan))
    convert(source, tmp_path / "a.ckpt", plan)
    again = make_plan(source, None, rename={}, given=read_map(tmp_path / "map.json"))
    convert(source, tmp_path / "b.ckpt", again)
    assert (tmp_path / "a.ckpt").read_bytes() == (tmp_path / "b.ckpt").read_bytes()
    assert "stem.conv.weight" in open_source(tmp_path / "b.ckpt")


@pytest.mark.parametrize(
    "tensors",
    [3, [{"source": []}], [{"source": ["a"], "target": ["b"], "transform": {"kind": "shell"}}]],
)
def test_malformed_maps(tensors: object, tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"schema": "isograd/weights-map/1", "tensors": tensors}))
    with pytest.raises(CheckpointError):
        read_map(path)


def test_a_rename_that_matches_nothing(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "a.pth", network()))
    with pytest.raises(UsageError, match="neither a tensor nor a module"):
        make_plan(source, None, rename={"convv": "x"})
    with pytest.raises(UsageError, match="would be called 'x'"):
        make_plan(source, None, rename={"conv.weight": "x", "conv1.weight": "x"})


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(write(tmp_path / "a.pth", network()))
    target = tmp_path / "b.ckpt"
    target.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise CheckpointError("no", "Again.")

    monkeypatch.setattr(conversion, "_read_back", fail)
    with pytest.raises(CheckpointError):
        convert(source, target, make_plan(source, "mindspore", rename={}))
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pth", "b.ckpt"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "a.pth", network())
    target, report = tmp_path / "a.ckpt", tmp_path / "r.json"
    assert main(["weights", str(source), "-o", str(target), "--json", str(report)]) == 0
    assert "read back and equal" in capsys.readouterr().out
    found = json.loads(report.read_text())
    assert found["schema"] == "isograd/weights/1"
    assert found["tensors"] == 10


def test_a_cast_that_overflows_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "big.pth", {"w": np.array([1e30, 1.0], np.float32)})
    target = tmp_path / "h.pth"
    call = ["weights", str(source), "-o", str(target), "--dtype", "float16"]
    assert main(call) == 2
    assert "1 of float32 in w would be infinite in float16" in capsys.readouterr().err
    assert not target.exists()
    assert main([*call, "--allow-overflow"]) == 1
    assert "1 numbers of float32 are infinite" in capsys.readouterr().out
    np.testing.assert_array_equal(open_source(target).read("w").values, [np.inf, 1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.pth", "-o", "a.pth"], "would be overwritten"),
        (["a.pth", "-o", "a.xyz"], "names no format"),
        (["gone.pth", "-o", "a.ckpt"], "does not exist"),
        (["a.pth", "-o", "b.ckpt", "--rename", "x"], "is no OLD=NEW"),
        (["a.pth", "-o", "b.ckpt", "--map", "m", "--rename", "a=b"], "--map decides"),
    ],
)
def test_wrong_calls(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.pth", network())
    assert main(["weights", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_shards_appear_as_a_whole_folder(tmp_path: Path) -> None:
    source = write(tmp_path / "a.pth", network())
    target = tmp_path / "sharded"
    call = ["weights", str(source), "-o", str(target), "--shard-size", "400B", "--quiet"]
    assert main(call) == 0
    files = sorted(path.name for path in target.iterdir())
    assert files[-1] == "model.safetensors.index.json"
    assert len(files) > 2
    found = open_source(target)
    assert set(found.names()) == set(network())
    for name, expected in network().items():
        np.testing.assert_array_equal(found.read(name).values, expected, strict=True)
    assert main(call) == 2  # the folder is no longer empty
    assert main(["weights", str(target), "-o", str(tmp_path / "b.pth"), "--quiet"]) == 0
    assert open_source(tmp_path / "b.pth").names() == found.names()
    shard = str(target / files[0])
    assert main(["weights", str(target), "-o", shard]) == 2  # it would overwrite its own source


def test_a_damaged_source_is_refused_by_its_checksum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.pth", network())
    content = bytearray(source.read_bytes())
    content[content.find(network()["conv.weight"].tobytes()) + 5] ^= 1
    source.write_bytes(content)
    assert main(["weights", str(source), "-o", str(tmp_path / "a.ckpt")]) == 2
    assert "checksum" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]


@pytest.mark.parametrize("is_second", [False, True])
def test_compare_refuses_a_damaged_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_second: bool
) -> None:
    good, bad = (write(tmp_path / f"{side}.pth", network()) for side in "ab")
    content = bytearray(bad.read_bytes())
    content[content.find(network()["conv.weight"].tobytes())] ^= 1  # the last bit of a fraction
    bad.write_bytes(content)
    inputs = [str(good), str(bad)] if is_second else [str(bad), str(good)]
    assert main(["compare", *inputs]) == 2
    said = capsys.readouterr().err
    assert "b.pth" in said
    assert "checksum" in said


def test_a_checksum_of_mindspore(tmp_path: Path) -> None:
    source = write(tmp_path / "a.pth", network())
    for flags, expected in (([], False), (["--crc"], True)):
        target = tmp_path / f"a{len(flags)}.ckpt"
        assert main(["weights", str(source), "-o", str(target), "--quiet", *flags]) == 0
        assert open_source(target).verify() is expected


def test_no_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(write(tmp_path / "a.pth", network()))
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(CheckpointError, match="100 free"):
        convert(source, tmp_path / "b.ckpt", make_plan(source, "mindspore"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32]),
        st.integers(1, 20),
        elements=st.floats(allow_subnormal=True, width=32),
    )
)
def test_bfloat16_is_the_nearest(values: np.ndarray) -> None:
    made, _ = cast("w", RawTensor(values, str(values.dtype)), "bfloat16")
    wide = made.bits.astype(np.uint32) << 16
    found = wide.view(np.float32).astype(np.float64)
    for step in (-1, 1):
        with np.errstate(over="ignore", invalid="ignore"):
            other = (wide + np.uint32(step << 16 & 0xFFFFFFFF)).view(np.float32).astype(np.float64)
        finite = np.isfinite(other) & np.isfinite(found) & np.isfinite(values)
        here, there, exact = found[finite], other[finite], values[finite].astype(np.float64)
        assert np.all(np.abs(here - exact) <= np.abs(there - exact))


def test_float64_is_rounded_once() -> None:
    values = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, -(1 + 2**-8 + 2**-40)])
    made, _ = cast("w", RawTensor(values, "float64"), "bfloat16")
    assert made.bits.tolist() == [0x3F81, 0x3F80, 0xBF81]


def test_large_tensors_pass_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isograd.weights.blocks.BLOCK_BYTES", 64)
    monkeypatch.setattr("isograd.weights.stream._KEPT_BYTES", 128)
    source = open_source(write(tmp_path / "a.pth", network()))
    moves = [Move((name,), (name,)) for name in network()]
    moves[0] = Move(("conv.weight",), ("turned",), Transpose((1, 2, 3, 0)))
    moves[6] = Move(("ln.weight", "ln.bias"), ("joined",), Concatenate(0, (5, 5)))
    moves[7] = Move(("embedding.weight",), ("first", "rest"), Split(0, (2, 5)))
    convert(source, tmp_path / "b.safetensors", Plan((*moves[:8], *moves[9:])))
    found, given = open_source(tmp_path / "b.safetensors"), network()
    expected = given["conv.weight"].transpose(1, 2, 3, 0)
    np.testing.assert_array_equal(found.read("turned").values, expected)
    joined = np.concatenate([given["ln.weight"], given["ln.bias"]])
    np.testing.assert_array_equal(found.read("joined").values, joined)
    np.testing.assert_array_equal(found.read("rest").values, given["embedding.weight"][2:])
