"""Earlier trials from MindInsight's lineage files."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

import isograd
from isograd.compare.files.event_file import masked_crc
from isograd.tune.lineage import read_lineage


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def message(number: int, value: bytes | int | float) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def record(event: bytes) -> bytes:
    head = struct.pack("<Q", len(event))
    return head + struct.pack("<I", masked_crc(head)) + event + struct.pack("<I", masked_crc(event))


def write_run(folder: Path, rate: float, batch_size: int, loss: float, accuracy: float) -> None:
    """A run's lineage as MindSpore's SummaryCollector writes it: events 6 (train), 7, 10."""
    folder.mkdir(parents=True)
    hyper = message(1, b"Momentum") + message(2, rate) + message(8, batch_size)
    train = message(6, message(1, hyper) + message(3, message(2, loss)))
    metrics = message(7, message(2, json.dumps({"accuracy": accuracy}).encode()))
    entry = message(1, b"decay") + varint(2 << 3 | 1) + struct.pack("<d", 0.25)
    own = message(10, message(1, message(5, entry)))
    name = "run.events.out.events.summary.1600000000.1.host_lineage"
    (folder / name).write_bytes(b"".join(map(record, (train, metrics, own))))


def test_hyper_parameters_loss_metrics_and_what_users_added(tmp_path: Path) -> None:
    write_run(tmp_path / "train_1", 0.125, 32, 0.5, 0.75)
    assert dict(read_lineage(tmp_path)) == {
        "train_1": {
            "optimizer": "Momentum",
            "learning_rate": 0.125,
            "batch_size": 32,
            "loss": 0.5,
            "accuracy": 0.75,
            "decay": 0.25,
        }
    }


@pytest.mark.parametrize("length", [0, 11, 40, 90])
def test_a_file_that_is_cut_off_gives_what_stands_before(tmp_path: Path, length: int) -> None:
    write_run(tmp_path / "a", 0.125, 32, 0.5, 0.75)
    (file,) = (tmp_path / "a").iterdir()
    file.write_bytes(file.read_bytes()[:length])
    found = dict(read_lineage(tmp_path)).get("a", {})
    assert found.get("learning_rate") == (0.125 if length == 90 else None)


def test_they_are_the_first_trials_of_the_study(tmp_path: Path) -> None:
    write_run(tmp_path / "summary/train_1", 0.5, 32, 5.0, 0.75)
    write_run(tmp_path / "summary/train_2", 4.0, 32, 40.0, 0.75)  # outside of the bounds
    (tmp_path / "train.py").write_text("print('loss: 9')\n")
    (tmp_path / "config.yaml").write_text(
        f"command: {sys.executable} train.py\nsummary_base_dir: ./summary\n"
        "tuner: {name: gp}\ntarget: {name: loss, goal: minimize}\n"
        "parameters:\n  learning_rate: {bounds: [0.0001, 1.0], type: float}\n"
    )
    report = isograd.tune(tmp_path / "config.yaml", trials=2)
    assert [trial.values for trial in report.trials] == [(5.0,), (9.0,)]
    assert report.trials[0].run == "train_1"
    assert report.best[0].params == {"learning_rate": 0.5}
