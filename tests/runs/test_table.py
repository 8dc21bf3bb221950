"""Tables of numbers per step: what was appended is what is read, at any moment."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isograd.errors import RunError
from isograd.runs.table import Table, TableWriter

ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(["loss", "lr", "net/0.weight", "ü\n"]),
        st.floats(width=64, allow_nan=True),
        min_size=1,
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, is_closed=st.booleans())
def test_what_was_appended_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, float]], is_closed: bool
) -> None:
    folder = tmp_path_factory.mktemp("table")
    writer = TableWriter(folder, "float64")
    for step, row in enumerate(rows):
        writer.append(step, row)
    if is_closed:
        writer.close()
    table = Table(folder)
    assert table.row_count == len(rows)
    for name in {name for row in rows for name in row}:
        steps, values = table.series(name)
        expected = [(step, row[name]) for step, row in enumerate(rows) if name in row]
        assert steps.tolist() == [step for step, _ in expected]
        np.testing.assert_array_equal(values, [value for _, value in expected])


def test_a_loss_that_is_nan_is_not_a_loss_that_was_not_measured(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path, "float32")
    writer.append(0, {"loss": math.nan, "lr": 1.0})
    writer.append(1, {"lr": 1.0})
    steps, values = Table(tmp_path).series("loss")
    assert steps.tolist() == [0]
    assert math.isnan(values[0])


def test_full_parts_are_sealed_and_read_as_one_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isograd.runs.table._MOST_ROWS", 5)
    monkeypatch.setattr("isograd.runs.table._FEWEST_ROWS", 5)
    writer = TableWriter(tmp_path, "float64")
    for step in range(13):
        writer.append(step, {"loss": step / 2})
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".columns", ".columns", ".rows"]
    steps, values = Table(tmp_path).series("loss")
    assert steps.tolist() == list(range(13))
    assert values.tolist() == [step / 2 for step in range(13)]
    assert Table(tmp_path).last_row() == (12, {"loss": 6.0})


@pytest.mark.parametrize("lost_bytes", [1, 5, 20, 27, 28, 29])
def test_a_crash_costs_at_most_the_row_that_was_being_written(
    tmp_path: Path, lost_bytes: int
) -> None:
    writer = TableWriter(tmp_path, "float64")
    for step in range(3):
        writer.append(step, {"loss": float(step)})
    (part,) = tmp_path.iterdir()
    content = part.read_bytes()
    part.write_bytes(content[:-lost_bytes])
    width = 8 + 8 + 8 + 4
    assert Table(tmp_path).row_count == 3 - -(-lost_bytes // width)


def test_a_row_with_a_wrong_checksum_at_the_end_is_left_out(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path, "float64")
    for step in range(3):
        writer.append(step, {"loss": float(step)})
    (part,) = tmp_path.iterdir()
    content = bytearray(part.read_bytes())
    content[-8] ^= 1
    part.write_bytes(content)
    assert Table(tmp_path).steps.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"hello\n", "has no readable header", id="no JSON"),
        pytest.param(b'{"columns":["a"],"dtype":"float16","rows":1}\n', "header", id="dtype"),
        pytest.param(b'{"columns":["a"],"dtype":"float64","rows":2}   \n', "announces", id="short"),
        pytest.param(b"", "has no readable header", id="empty"),
    ],
)
def test_a_damaged_part_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "part-000000.columns").write_bytes(content)
    with pytest.raises(RunError, match=f"part-000000.columns: .*{says}"):
        Table(tmp_path)


def test_a_matrix_of_a_long_table_is_thinned_evenly(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path, "float64")
    for step in range(101):
        writer.append(step, {"a": step, "b": -step} if step != 50 else {"a": step})
    steps, values = Table(tmp_path).matrix(["b", "a"], most_rows=11)
    assert steps.tolist() == list(range(0, 101, 10))
    assert values[:, 1].tolist() == list(range(0, 101, 10))
    assert math.isnan(values[5, 0])
