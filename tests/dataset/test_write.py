"""Conversions keep every value, appear whole or not at all, and MindSpore reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.conftest import image_folder, picture, png

from isograd.cli import main
from isograd.data.feed import Feed, batches
from isograd.data.sources.base import Item, Problem, Sample, SampleSource
from isograd.data.sources.mindrecord import _integers
from isograd.data.sources.open import open_samples
from isograd.data.write import mindrecord
from isograd.data.write.base import canonical
from isograd.data.write.mindrecord import encode_integers
from isograd.data.write.run import FORMATS, convert
from isograd.errors import DataError
from isograd.progress import SilentProgress

PIPELINES = Path(__file__).parent / "pipelines"


class Given(SampleSource):
    """Samples that a test gives."""

    format = "memory"

    def __init__(self, *items: Item) -> None:
        super().__init__("memory")
        self._items = items

    def samples(self) -> Iterator[Item]:
        return iter(self._items)


def mixed(count: int = 20) -> Given:
    """Every kind of field: numbers, texts, bytes, arrays of fixed and of varying length."""
    rng = np.random.default_rng(0)
    return Given(
        *(
            Sample(
                f"#{n}",
                {
                    "image": png(picture(n)),
                    "label": np.asarray(n % 3, np.int64),
                    "weight": np.asarray(rng.random(), np.float64),
                    "text": f"sample {n} with ü",
                    "ids": rng.integers(-(2**40), 2**40, n % 7 + 1),
                    "boxes": rng.random((n % 4, 4)).astype(np.float32),
                    "pixels": rng.integers(0, 256, (4, 5, 3)).astype(np.uint8),
                },
            )
            for n in range(count)
        )
    )


def _digests(path: Path) -> list[bytes]:
    items = open_samples(str(path)).samples()
    return [canonical(item.fields) for item in items if isinstance(item, Sample)]


@pytest.mark.parametrize("first", list(FORMATS))
@pytest.mark.parametrize("second", list(FORMATS))
def test_every_format_becomes_every_other_and_keeps_all_values(
    tmp_path: Path, first: str, second: str
) -> None:
    source = mixed()
    wanted = [canonical(item.fields) for item in source.samples() if isinstance(item, Sample)]
    one, other = tmp_path / f"one{first}", tmp_path / f"other{second}"
    convert(source, one, SilentProgress())
    found = convert(open_samples(str(one)), other, SilentProgress())
    assert found.samples == len(wanted)
    assert _digests(one) == wanted
    assert _digests(other) == wanted
    assert {p.name for p in tmp_path.iterdir()} <= {
        name + end for name in (one.name, other.name) for end in ("", ".db", ".schema.json")
    }


@pytest.mark.parametrize("suffix", [".tfrecord", ".npz", ".parquet", ".tar"])
def test_dtypes_are_kept_where_the_format_can(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    convert(mixed(3), path, SilentProgress())
    (first, *_) = open_samples(str(path)).samples()
    wanted = next(mixed(1).samples())
    assert isinstance(first, Sample)
    assert isinstance(wanted, Sample)
    dtypes = [
        {n: str(v.dtype) for n, v in s.fields.items() if isinstance(v, np.ndarray)}
        for s in (first, wanted)
    ]
    assert dtypes[0] == dtypes[1]


def test_mindspore_reads_the_mindrecord(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore.dataset as ds
    from mindspore.mindrecord import FileReader

    # pages of 4 KiB: the 200 rows take many groups and several pages of each kind
    monkeypatch.setattr(mindrecord, "PAGE_BYTES", 4096)
    monkeypatch.setattr("isograd.data.write.run.PAGE_BYTES", 4096)
    path = tmp_path / "x.mindrecord"
    convert(mixed(200), path, SilentProgress())
    wanted = [item.fields for item in mixed(200).samples() if isinstance(item, Sample)]
    reader = FileReader(str(path))
    rows = sorted(reader.get_next(), key=lambda row: str(row["text"]))
    reader.close()
    ordered = sorted(wanted, key=lambda fields: str(fields["text"]))
    assert len(rows) == len(ordered)
    for row, fields in zip(rows, ordered, strict=True):
        assert row["image"] == fields["image"]
        assert int(row["label"]) == int(fields["label"])  # type: ignore[arg-type]
        assert np.array_equal(row["ids"], fields["ids"])
        assert np.array_equal(row["boxes"].reshape(-1, 4), fields["boxes"])
    dataset = ds.MindDataset(str(path), ["label", "pixels"], shuffle=False)
    labels = [int(r["label"]) for r in dataset.create_dict_iterator(1, output_numpy=True)]
    assert labels == [int(f["label"]) for f in wanted]  # type: ignore[arg-type]


def test_mindspore_reads_the_tfrecord_by_its_schema(tmp_path: Path) -> None:
    import mindspore.dataset as ds

    path = tmp_path / "x.tfrecord"
    convert(mixed(10), path, SilentProgress())
    schema = ds.Schema(str(path) + ".schema.json")
    dataset = ds.TFRecordDataset([str(path)], schema, ["label"], shuffle=False)
    labels = [int(r["label"]) for r in dataset.create_dict_iterator(1, output_numpy=True)]
    assert labels == [n % 3 for n in range(10)]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_integers_of_mindrecord_round_trip(values: list[int]) -> None:
    array = np.asarray(values, np.int64)
    encoded = encode_integers(array)
    assert np.array_equal(_integers(memoryview(encoded), np.dtype(np.int64)), array)


def test_a_record_larger_than_a_page_gets_a_larger_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isograd.data.write.run.PAGE_BYTES", 4096)
    source = Given(*(Sample(str(n), {"data": bytes([n]) * (n * 5000)}) for n in range(1, 5)))
    path = tmp_path / "x.mindrecord"
    convert(source, path, SilentProgress())
    assert _digests(path) == [
        canonical(item.fields) for item in source.samples() if isinstance(item, Sample)
    ]


def test_what_a_format_cannot_hold_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    odd = Given(
        Sample("a", {"x": np.zeros((2, 3), np.float32)}),
        Sample("b", {"x": np.zeros((2, 4), np.float32)}),
    )
    with pytest.raises(DataError, match="field 'x': its kind or its shape"):
        convert(odd, tmp_path / "x.mindrecord", SilentProgress())
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_changes_what_was_written_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = FORMATS[".npz"][1].finish

    def damaged(self: Any) -> Any:
        found = finish(self)
        content = bytearray(self.path.read_bytes())
        content[len(content) // 2] ^= 1
        self.path.write_bytes(content)
        return found

    monkeypatch.setattr(FORMATS[".npz"][1], "finish", damaged)
    with pytest.raises(DataError):
        convert(mixed(), tmp_path / "x.npz", SilentProgress())
    assert list(tmp_path.iterdir()) == []


def test_items_that_cannot_be_read_are_left_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = image_folder(tmp_path)
    (folder / "cat" / "empty.png").write_bytes(b"")
    target = tmp_path / "x.tfrecord"
    assert main(["data", str(folder), "-o", str(target)]) == 1
    assert "cat/empty.png: is empty" in capsys.readouterr().out
    assert len(_digests(target)) == 6


def test_a_problem_is_no_sample() -> None:
    source = Given(Problem("a", "is damaged"))
    with pytest.raises(DataError, match="yields no sample"):
        convert(source, Path("x.npz"), SilentProgress())


class TestFeed:
    """Batches that are stored once are read in their order in either framework."""

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("feed") / "batches"
        pipeline = f"{PIPELINES / 'torch_side.py'}:table"
        assert main(["data", pipeline, "-o", str(folder), "--batches", "3", "--quiet"]) == 0
        return folder

    @pytest.mark.parametrize("framework", ["numpy", "torch", "mindspore"])
    def test_one_line_reads_them(self, folder: Path, framework: str) -> None:
        read = [[np.asarray(part) for part in batch] for batch in batches(folder, framework)]
        assert [part.tolist() for part in read[0]] == [
            np.arange(18, dtype=np.float32).reshape(6, 3).tolist(),
            list(range(6)),
        ]
        assert [len(rows) for rows, _ in read] == [6, 6, 6]

    def test_a_batch_that_was_changed_is_refused(self, folder: Path, tmp_path: Path) -> None:
        import shutil

        copied = shutil.copytree(folder, tmp_path / "copy")
        (copied / "batch-000001.npz").write_bytes(b"PK")
        feed = Feed(copied)
        feed.batch(0)
        with pytest.raises(DataError, match=r"batch-000001\.npz: is not what was stored"):
            feed.batch(1)

    def test_an_index_cannot_lead_out_of_the_folder(self, folder: Path, tmp_path: Path) -> None:
        import shutil

        copied = shutil.copytree(folder, tmp_path / "copy")
        index = json.loads((copied / "feed.json").read_text())
        index["batches"][0]["file"] = "../secret.npz"
        (copied / "feed.json").write_text(json.dumps(index))
        with pytest.raises(DataError, match="is missing"):
            Feed(copied).batch(0)

    def test_verify_takes_them_as_inputs(self, folder: Path, tmp_path: Path) -> None:
        from isograd.verify.case import case_of
        from isograd.verify.inputs import source_of

        side = {"model": "net.py:build", "loss": "net.py:loss"}
        table = {"inputs": str(folder), "targets": str(folder), "reference": side, "port": side}
        case = case_of(table, tmp_path / "case.toml")
        source = source_of(case, 0, None)  # type: ignore[arg-type]  # no worker is asked
        assert list(source.inputs(0)) == ["0"]
        assert source.inputs(1)["0"].values[0].tolist() == [18.0, 19.0, 20.0]
        assert source.targets(0)[0].values.tolist() == list(range(6))
        assert source.targets(4)[0].values.tolist() == source.targets(1)[0].values.tolist()
