"""What is saved is what is loaded: any nest of plain values and tensors, never code."""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("mindspore")

import mindspore as ms

from isograd.runtime import training_checkpoints as port

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
ARRAYS = st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=4).map(
    lambda values: ms.Tensor(np.array(values, np.float32))
)
KEYS = st.text(max_size=4) | st.integers(0, 9)
NESTS = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


def plain(value: Any) -> Any:
    if isinstance(value, ms.Tensor):
        return ("tensor", str(value.dtype), value.asnumpy().tolist())
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(part) for part in value)
    return value


@given(NESTS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_round_trip(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "kept.pth.tar"
    port.save(value, path)
    assert plain(port.load(path)) == plain(value)
    assert os.listdir(tmp_path) == ["kept.pth.tar"]


def test_a_file_that_is_open_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "net.ckpt"
    with path.open("wb") as file:
        port.save({"epoch": 3}, file)
    with path.open("rb") as file:
        assert port.load(file) == {"epoch": 3}
    assert port.load(path) == {"epoch": 3}
    with pytest.raises(TypeError, match="give its path"):
        port.save({"epoch": 3}, 5)


@pytest.mark.parametrize(
    "opened", [io.BytesIO, tempfile.TemporaryFile, tempfile.NamedTemporaryFile]
)
def test_what_is_written_into_a_file_in_memory_or_without_a_path_is_read(opened: Any) -> None:
    value = {"a": ms.Tensor(np.ones((2, 3), np.float32)), "n": [1, "b"]}
    with opened() as file:
        port.save(value, file)
        file.seek(0)
        assert len(file.read()) > 24
        file.seek(0)
        assert plain(port.load(file)) == plain(value)


def test_state_dict_is_an_ordinary_checkpoint(tmp_path: Path) -> None:
    state = {"layer.weight": ms.Tensor(np.ones((2, 3), np.float32))}
    port.save(state, tmp_path / "net.ckpt")
    read = ms.load_checkpoint(str(tmp_path / "net.ckpt"))
    assert list(read) == ["layer.weight"]
    assert plain(dict(port.load(tmp_path / "net.ckpt"))) == plain(state)


def test_arguments_are_kept(tmp_path: Path) -> None:
    given = {"args": argparse.Namespace(lr=0.1, folder="x"), "x": np.arange(3)}
    port.save(given, tmp_path / "a")
    read = port.load(tmp_path / "a", map_location="cpu", weights_only=False)
    assert read["args"] == given["args"]
    np.testing.assert_array_equal(read["x"], given["x"])


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object at model cannot be kept"):
        port.save({"model": object()}, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_torch_says_how_to_convert_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(1)}, tmp_path / "a.pth")
    with pytest.raises(ValueError, match="isograd weights"):
        port.load(tmp_path / "a.pth")


class Scaled(ms.nn.Cell):
    """A layer with a setting that no weight shows."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.layer, self.factor = ms.nn.Dense(2, 1), factor

    def construct(self, x: Any) -> Any:
        return self.layer(x) * self.factor


def test_a_whole_network_is_read_by_the_process_that_saved_it(tmp_path: Path) -> None:
    networks = {factor: Scaled(factor) for factor in (2.0, 3.0)}
    x = ms.Tensor([[1.0, 2.0]], ms.float32)
    before = {factor: network(x).asnumpy() for factor, network in networks.items()}
    for factor, network in networks.items():
        network.layer.set_train()
        port.save(network, tmp_path / f"{factor}.ckpt")
        network.layer.weight.set_data(ms.ops.zeros_like(network.layer.weight))
        network.layer.set_train(False)
    for factor in networks:
        read = port.load(tmp_path / f"{factor}.ckpt")
        np.testing.assert_array_equal(read(x).asnumpy(), before[factor])
        assert (read.training, read.layer.training) == (False, True)


def test_another_process_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port.save(Scaled(2.0), tmp_path / "net.ckpt")
    monkeypatch.setattr(port, "_NETWORKS", {})
    with pytest.raises(TypeError, match="a whole Scaled was saved by another process"):
        port.load(tmp_path / "net.ckpt")


class Counting(ms.nn.Cell):  # type: ignore[misc]
    """A network that writes into a buffer and keeps plain values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = ms.nn.Dense(2, 2)
        self.register_buffer("count", ms.Tensor([0.0, 0.0]))
        self.scale, self.seen = 1.0, []

    def step(self) -> None:
        self.count.copy_(self.count + 1)
        self.layer.weight.set_data(self.layer.weight + 1)
        self.scale += 1.0
        self.seen.append(1)

    def found(self) -> Any:
        return [self.count.tolist(), self.layer.weight.tolist(), self.scale, len(self.seen)]


def test_a_whole_network_is_what_it_was_when_it_was_saved(tmp_path: Path) -> None:
    network, expected = Counting(), []
    for number in range(2):
        network.step()
        network.set_train(not number)
        port.save(network, tmp_path / f"{number}.ckpt")
        expected.append((network.found(), network.training))
    network.step()
    now = network.found()
    for number in range(2):
        loaded = port.load(tmp_path / f"{number}.ckpt")
        assert (loaded.found(), loaded.training) == expected[number]
        loaded.step()
        again = port.load(tmp_path / f"{number}.ckpt")
        assert again.found() == expected[number][0]
    assert network.found() == now
