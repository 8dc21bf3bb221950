"""Loss curves: every kind of log, alignment, and the guide's verdict."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from isograd.compare.files.curve_model import CurvesReport, CurveVerdict
from isograd.compare.files.curves import compare_logs
from isograd.compare.files.event_file import masked_crc
from isograd.compare.files.logs import is_log, read_two_logs
from isograd.errors import CheckpointError, UsageError

LOSSES = (2.5, 2.0, 1.5, 1.25)


def _record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    crcs = (struct.pack("<I", masked_crc(part)) for part in (head, data))
    return head + next(crcs) + data + next(crcs)


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def _event(step: int, loss: float, scalar_field: int) -> bytes:
    value = _field(1, b"loss") + bytes([scalar_field << 3 | 5]) + struct.pack("<f", loss)
    return struct.pack("<Bd", 9, 1.0) + bytes([16, step]) + _field(5, _field(1, value))


def _events(scalar_field: int) -> bytes:
    version = _record(struct.pack("<Bd", 9, 1.0) + _field(3, b"brain.Event:2"))
    return version + b"".join(
        _record(_event(step, loss, scalar_field)) for step, loss in enumerate(LOSSES, 1)
    )


def _log(kind: str) -> bytes:
    steps = list(enumerate(LOSSES, 1))
    texts = {
        "LossMonitor": "".join(
            f"epoch: {(step + 1) // 2} step: {2 - step % 2}, loss is {loss}\n"
            for step, loss in steps
        ),
        "brackets": "".join(
            f"Epoch [1/2], Step [{step}/4], lr 0.1, Loss: {loss:.4f}\n" for step, loss in steps
        ),
        "transformers": "".join(
            str({"loss": loss, "learning_rate": 5e-5, "epoch": step / 10}) + "\n"
            for step, loss in steps
        ),
        "json lines": "".join(json.dumps({"step": s, "loss": v}) + "\n" for s, v in steps),
        "csv": "step,lr,loss\n" + "".join(f"{step},0.1,{loss}\n" for step, loss in steps),
        "semicolons": "step;loss\n" + "".join(f"{step};{loss}\n" for step, loss in steps),
        "iterations": "".join(f"[INFO] iter {step}: train loss = {v}\n" for step, v in steps),
        "Trainer's state": json.dumps(
            {"epoch": 1.0, "log_history": [{"step": s, "loss": v, "lr": 0.1} for s, v in steps]}
        ),
        "Keras's history": json.dumps({"loss": LOSSES, "accuracy": [0.1] * 4}),
        "Megatron": "".join(
            f" iteration {step:8}/     500 | lr: 1.5E-04 | lm loss: {loss:.6E} | x: 1 |\n"
            for step, loss in steps
        ),
        "MindFormers": "".join(
            f"2026-01-01 - INFO - {{ Epoch:[  1/  2], step:[{step:5}/ 1563], loss: {loss:5.3f}, "
            f"per_step_time: 3145ms, lr: 0.0001 }}\n"
            for step, loss in steps
        ),
        "Lightning": "epoch,step,train_loss,val_loss\n"
        + "".join(f"0,{step},{loss},\n0,{step},,9.0\n" for step, loss in steps),
    }
    return {
        "tensorboard": _events(2),
        "mindspore": _events(3),
        **{name: text.encode() for name, text in texts.items()},
    }[kind]


KINDS = (
    "LossMonitor", "brackets", "transformers", "json lines", "csv", "semicolons", "iterations",
    "tensorboard", "mindspore", "Trainer's state", "Keras's history", "Megatron", "MindFormers",
    "Lightning",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_log(tmp_path: Path, kind: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(_log(kind))
    second.write_bytes(_log("csv"))
    assert is_log(str(first))
    mine, its = read_two_logs(first, second)
    assert mine.losses == its.losses == LOSSES
    assert mine.steps == (1, 2, 3, 4)
    assert compare_logs(first, second).verdict is CurveVerdict.AGREE


def _compare(tmp_path: Path, first: str, second: str) -> CurvesReport:
    for name, text in (("first", first), ("second", second)):
        (tmp_path / name).write_text(text)
    return compare_logs(tmp_path / "first", tmp_path / "second")


def _csv(*losses: object, start: int = 1, stride: int = 1) -> str:
    return "step,loss\n" + "".join(
        f"{start + stride * place},{loss}\n" for place, loss in enumerate(losses)
    )


@pytest.mark.parametrize(
    ("other", "verdict", "place"),
    [
        ((2.5, 2.0, 1.5, 1.25), CurveVerdict.AGREE, None),
        ((2.6, 2.0, 1.5, 1.25), CurveVerdict.FORWARD, 0),
        ((2.5, 2.1, 1.5, 1.25), CurveVerdict.UPDATE, 1),
        ((2.5, 2.0, 1.5, 1.3), CurveVerdict.LATER, 3),
        ((2.501, 2.0, 1.5, 1.25), CurveVerdict.AGREE, None),
        (("nan", 2.0, 1.5, 1.25), CurveVerdict.FORWARD, 0),
        ((2.5, 2.0, 1.5), CurveVerdict.INCOMPLETE, None),
        ((-2.5, 2.0, 1.5, 1.25), CurveVerdict.FORWARD, 0),
    ],
)
def test_the_guides_verdict(
    tmp_path: Path, other: tuple[object, ...], verdict: CurveVerdict, place: int | None
) -> None:
    report = _compare(tmp_path, _csv(*LOSSES), _csv(*other))
    assert (report.verdict, report.first_out) == (verdict, place)
    assert report.needs_action is (verdict is not CurveVerdict.AGREE)


@pytest.mark.parametrize(
    ("other", "verdict", "said"),
    [
        ((2.5, 2.0, 1.5, "nan"), CurveVerdict.NONFINITE, "at step 4 the loss of B is not finite"),
        ((2.5, 2.0, 1.6, "inf"), CurveVerdict.LATER, "at step 4 the loss of B is not finite"),
        ((2.5, "nan", 1.5, 1.25), CurveVerdict.UPDATE, "at step 2 the loss of B is not finite"),
    ],
)
def test_a_loss_that_is_not_finite_is_no_drift(
    tmp_path: Path, other: tuple[object, ...], verdict: CurveVerdict, said: str
) -> None:
    report = _compare(tmp_path, _csv(*LOSSES), _csv(*other))
    assert report.verdict is verdict
    assert said in report.explanation


def test_sparse_logs_do_not_tell_the_stage(tmp_path: Path) -> None:
    sides = _csv(2.5, 2.0, start=100, stride=100), _csv(2.6, 2.0, start=100, stride=100)
    assert _compare(tmp_path, *sides).verdict is CurveVerdict.UNKNOWN


def test_counting_from_zero_and_from_one(tmp_path: Path) -> None:
    report = _compare(tmp_path, _csv(*LOSSES, start=0), _csv(*LOSSES))
    assert report.verdict is CurveVerdict.AGREE
    assert "counts from 0" in report.notes[0]


def test_no_common_step_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no step in common"):
        _compare(tmp_path, _csv(1.0, start=5), _csv(1.0, start=9))


def test_a_flipped_bit_in_an_event_is_found(tmp_path: Path) -> None:
    content = bytearray(_events(2))
    content[-10] ^= 1
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        compare_logs(path, path)


def test_a_record_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(_events(2)[:-7])
    assert len(read_two_logs(path, path)[0].losses) == 3
    assert is_log(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\0",
        b'{"a": 1}\n',
        b"hello\n",
        b'{\n"F.cross_entropy_loss.0.forward": 3,\n"data": {}}\n',
    ],
)
def test_what_is_no_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert not is_log(str(tmp_path / "file"))
