"""Dumps as the tools write them: binary files of devices, long names, and a real MindSpore's."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isograd.checkpoints.open import open_source

Tensor = tuple[int, int, tuple[int, ...], tuple[int, ...], bytes]
NEW_NAME = "Conv2D.Default_net-op12.2.7.161243956333802"
OLD_NAME = "Conv2D.Default_net-op12.2.161243956333802"


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _shape(extents: tuple[int, ...]) -> bytes:
    return _field(1, b"".join(_varint(extent) for extent in extents))


def binary_dump(inputs: list[Tensor], outputs: list[Tensor], buffer: bytes = b"") -> bytes:
    """A file as CANN writes it: dtype, layout, shape, the network's shape and the bytes of each."""
    header = _field(1, b"2.0") + _number(2, 161243956333802)
    for number, size_field, tensors in ((3, 6, outputs), (4, 5, inputs)):
        for dtype, layout, shape, network, content in tensors:
            message = _number(1, dtype) + _number(2, layout) + _field(3, _shape(shape))
            message += _number(size_field, len(content)) + _field(size_field + 1, _shape(network))
            header += _field(number, message)
    if buffer:
        header += _field(5, _number(1, 0) + _number(3, len(buffer)))
    body = b"".join(tensor[4] for tensor in (*inputs, *outputs)) + buffer
    return struct.pack("<Q", len(header)) + header + body


def plain(array: np.ndarray, number: int) -> Tensor:
    """A tensor in the layout of the network."""
    return number, 2, array.shape, array.shape, array.tobytes()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(4, dtype=np.float16)


@pytest.mark.parametrize("name", [NEW_NAME, OLD_NAME])
def test_a_binary_dump_with_both_schemes_of_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(binary_dump([plain(X, 1), plain(Y, 2)], [plain(X + 1, 1)], b"buffer"))
    for source in (open_source(path), open_source(tmp_path)):
        assert source.names() == (
            "Default_net-op12.input.0",
            "Default_net-op12.input.1",
            "Default_net-op12.output.0",
        )
        np.testing.assert_array_equal(source.read("Default_net-op12.input.1").values, Y)
        np.testing.assert_array_equal(source.read("Default_net-op12.output.0").values, X + 1)
        assert [info.order for info in source] == [0, 1, 2]


@pytest.mark.parametrize(
    ("layout", "values", "turned"),
    [
        (3, (2, 1, 4, 5, 16), lambda a: a.transpose(0, 1, 4, 2, 3).reshape(2, 16, 4, 5)[:, :3]),
        (29, (2, 3, 16, 16), lambda a: a.transpose(1, 2, 0, 3).reshape(48, 32)[:40, :20]),
    ],
)
def test_layouts_of_a_device_are_turned_back(layout: int, values, turned, tmp_path: Path) -> None:
    array = np.arange(np.prod(values), dtype=np.float32).reshape(values)
    expected = turned(array)
    path = tmp_path / NEW_NAME
    path.write_bytes(binary_dump([], [(1, layout, values, expected.shape, array.tobytes())]))
    source = open_source(path)
    assert source.info("Default_net-op12.output.0").shape == expected.shape
    np.testing.assert_array_equal(source.read("Default_net-op12.output.0").values, expected)


def test_what_a_binary_dump_holds_of_other_kinds_is_named(tmp_path: Path) -> None:
    path = tmp_path / NEW_NAME
    path.write_bytes(binary_dump([(13, 2, (4,), (4,), b"text"), plain(X, 1)], []))
    source = open_source(tmp_path)
    assert len(source) == 1
    assert "dtype has the number 13" in next(iter(source.skipped.values()))


def test_names_that_were_too_long_for_the_disk(tmp_path: Path) -> None:
    long = "ReLU.Default_relu-op0.0.0.1795241930242683.output.0.DefaultFormat.Float32.npy"
    np.save(tmp_path / "123456789.npy", X)
    (tmp_path / "mapping.csv").write_text(f"123456789.npy,{long}\n")
    assert open_source(tmp_path).names() == ("Default_relu-op0.output.0",)


DUMPED = """
import mindspore as ms, numpy as np
from mindspore import nn
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        self.relu = nn.ReLU()
    def construct(self, x):
        return self.relu(self.fc(x))
net = Net()
for step in range(2):
    net(ms.Tensor(np.full((4, 3), step, np.float32))).asnumpy()
"""


def test_a_dump_of_a_real_mindspore(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    script = tmp_path / "network.py"
    script.write_text(DUMPED)
    dumped = tmp_path / "dump"
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(dumped),
        "net_name": "Net",
        "iteration": "0|1",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    }
    settings_file = tmp_path / "dump.json"
    settings_file.write_text(
        json.dumps(
            {
                "common_dump_settings": common,
                "e2e_dump_settings": {"enable": True, "trans_flag": True},
            }
        )
    )
    environment = {**os.environ, "MINDSPORE_DUMP_CONFIG": str(settings_file), "GLOG_v": "3"}
    subprocess.run(
        [sys.executable, str(script)], env=environment, check=True, capture_output=True, timeout=300
    )
    source = open_source(dumped / "rank_0")
    assert source.kind == "MindSpore dump"
    first = [name for name in source.names() if name.startswith("Net/0/0/")]
    outputs = [name.rpartition("/")[2] for name in first if ".output." in name]
    operators = ["fc-Dense_MatMul-op0", "fc-Dense_BiasAdd-op0", "relu-ReLU_ReLU-op0"]
    assert outputs[:3] == [f"Default_{operator}.output.0" for operator in operators]
    assert {"fc_weight.output.0", "fc_bias.output.0", "x.output.0"} <= set(outputs)
    last = "Net/0/1/Default_relu-ReLU_ReLU-op0.output.0"
    np.testing.assert_array_equal(source.read(last).values, np.full((4, 2), 3, np.float32))
