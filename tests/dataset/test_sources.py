"""Every reader keeps the promises of `sources/base.py`, and hostile files are refused by name."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.conftest import COUNT, MAKERS, picture, png, tfrecord

from isograd.checkpoints.protobuf import MalformedError
from isograd.compare.files.event_file import masked_crc
from isograd.data.sources.base import Problem, Sample, digest
from isograd.data.sources.example_proto import (
    encode_example,
    pack_varints,
    parse_example,
    unpack_varints,
)
from isograd.data.sources.media import UndecodableError, decode_image
from isograd.data.sources.open import open_samples
from isograd.data.sources.tfrecord import crc32c, masked
from isograd.errors import DataError, IsogradError


class TestConformance:
    """What holds for every format."""

    def test_the_format_is_recognised(self, made: tuple[str, Path]) -> None:
        assert open_samples(str(made[1])).format == made[0]

    def test_every_sample_comes_once_with_its_own_key(self, made: tuple[str, Path]) -> None:
        samples = list(open_samples(str(made[1])).samples())
        assert len(samples) == COUNT
        assert len({sample.key for sample in samples}) == COUNT

    def test_a_count_that_is_promised_is_right(self, made: tuple[str, Path]) -> None:
        assert open_samples(str(made[1])).count() in (None, COUNT)

    def test_it_can_be_read_twice(self, made: tuple[str, Path]) -> None:
        source = open_samples(str(made[1]))
        first, second = (
            [digest(s.fields) for s in source.samples() if isinstance(s, Sample)] for _ in range(2)
        )
        assert first == second
        assert len(set(first)) == COUNT

    def test_labels_are_whole_numbers(self, made: tuple[str, Path]) -> None:
        for sample in open_samples(str(made[1])).samples():
            assert isinstance(sample, Sample)
            label = sample.fields.get("label", sample.fields.get("cls"))
            assert isinstance(label, np.ndarray)
            assert label.dtype.kind == "i"
            assert int(label.reshape(-1)[0]) in (0, 1)

    def test_a_file_cut_anywhere_is_refused_or_yields_problems(
        self, made: tuple[str, Path]
    ) -> None:
        path = made[1]
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        whole = files[0].read_bytes()
        for part in (1, len(whole) // 3, len(whole) // 2, len(whole) - 3):
            files[0].write_bytes(whole[:part])
            try:
                items = list(open_samples(str(path)).samples())
            except IsogradError as error:
                said = str(error)
                assert files[0].name in said or str(path) in said
                continue
            assert all(isinstance(item, (Sample, Problem)) for item in items)


def _keys(path: Path) -> tuple[list[str], list[str]]:
    """Keys of sound samples, and of problems with their reasons."""
    items = list(open_samples(str(path)).samples())
    sound = [item.key for item in items if isinstance(item, Sample)]
    return sound, [f"{i.key}: {i.what}" for i in items if isinstance(i, Problem)]


class TestTFRecord:
    def test_a_wrong_checksum_is_told_and_the_rest_goes_on(self, tmp_path: Path) -> None:
        path = tfrecord(tmp_path)
        content = bytearray(path.read_bytes())
        first = struct.unpack_from("<Q", content)[0]
        content[12 + first // 2] ^= 1
        path.write_bytes(content)
        sound, problems = _keys(path)
        assert len(sound) == COUNT - 1
        assert problems == ["#0: the data at byte 12 has a wrong checksum"]

    def test_a_lying_length_ends_the_file_by_name(self, tmp_path: Path) -> None:
        path = tfrecord(tmp_path)
        content = bytearray(path.read_bytes())
        second = 16 + struct.unpack_from("<Q", content)[0]
        content[second : second + 8] = struct.pack("<Q", 1 << 60)
        path.write_bytes(content)
        sound, problems = _keys(path)
        assert sound == ["#0"]
        assert "wrong checksum; the rest is lost" in problems[0]

    def test_gzip_is_read_and_a_cut_stream_is_told(self, tmp_path: Path) -> None:
        plain = tfrecord(tmp_path).read_bytes()
        path = tmp_path / "z.tfrecord.gz"
        path.write_bytes(gzip.compress(plain))
        assert len(_keys(path)[0]) == COUNT
        path.write_bytes(gzip.compress(plain)[:-40])
        assert "gzip stream is damaged" in _keys(path)[1][0]

    def test_a_bomb_of_zeros_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.tfrecord.gz"
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        zeros = b"\0" * (1 << 20)
        body = b"".join(packer.compress(zeros) for _ in range(64))
        path.write_bytes(body + packer.flush())
        with pytest.raises(DataError, match=r"bomb\.tfrecord\.gz: is no TFRecord"):
            open_samples(str(path))

    @given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
    def test_packed_integers_round_trip(self, values: list[int]) -> None:
        array = np.asarray(values, np.int64)
        assert np.array_equal(unpack_varints(memoryview(pack_varints(array))), array)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_an_example_or_refused(self, data: bytes) -> None:
        found: dict[str, object] = {}
        with contextlib.suppress(MalformedError, ValueError):
            found = dict(parse_example(memoryview(data)))
        assert all(isinstance(name, str) for name in found)

    def test_texts_numbers_and_lists_are_read(self) -> None:
        features = {
            "image": [b"\x89PNG"],
            "words": [b"a", b"bc"],
            "x": np.asarray([0.5, -1.0], np.float32),
            "n": np.asarray([-(2**40)]),
        }
        found = parse_example(memoryview(encode_example(features)))
        assert found["image"] == b"\x89PNG"
        assert (found["words/0"], found["words/1"]) == (b"a", b"bc")
        assert np.array_equal(found["x"], np.asarray([0.5, -1.0], np.float32))  # type: ignore[arg-type]
        assert int(found["n"]) == -(2**40)  # type: ignore[arg-type]


class TestHostile:
    """Refused by name; nothing is executed; the rest goes on."""

    def test_an_image_of_a_billion_pixels_is_not_decoded(self) -> None:
        head = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
        chunk = b"IHDR" + head
        crc = struct.pack(">I", zlib.crc32(chunk))
        content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + crc
        content += png(picture(0))[33:]
        with pytest.raises(UndecodableError, match=r"1600000000 pixels|40,000 × 40,000 pixels"):
            decode_image(content)

    def test_links_out_of_the_folder_are_not_followed(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret.png"
        secret.write_bytes(png(picture(1)))
        root = MAKERS["image folder"](tmp_path)
        os.symlink(secret, root / "cat" / "link.png")
        os.symlink(tmp_path, root / "cat" / "loop")
        sound, problems = _keys(root)
        assert len(sound) == COUNT
        assert problems == [
            "cat/link.png: is a link that leads out of the folder",
            "cat/loop: is a link to a folder, which is not read",
        ]

    def test_pickled_arrays_are_refused_and_not_run(self, tmp_path: Path) -> None:
        marker = tmp_path / "ran"

        class Evil:
            def __reduce__(self) -> tuple[object, tuple[str]]:
                return os.system, (f"touch {marker}",)

        folder = tmp_path / "arrays"
        folder.mkdir()
        np.save(folder / "good.npy", np.arange(4))
        np.save(folder / "evil.npy", np.asarray([Evil()], object), allow_pickle=True)
        sound, problems = _keys(folder)
        assert sound == ["good.npy"]
        assert problems[0].startswith("evil.npy:")
        path = tmp_path / "data_batch_1"
        path.write_bytes(pickle.dumps(Evil()))
        with pytest.raises(DataError, match="pickled, which could run code"):
            open_samples(str(path))
        assert not marker.exists()

    def test_a_tar_with_a_pickle_and_a_link_yields_the_rest(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tar"
        with tarfile.open(path, "w") as archive:
            for name, content in (("a.txt", b"hello"), ("b.pyd", b"\x80\x04N."), ("c.txt", b"x")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            link = tarfile.TarInfo("d.txt")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        sound, problems = _keys(path)
        assert sound == ["a", "c"]
        assert "pickled, which could run code" in problems[0]
        assert problems[1] == "d.txt: is a link, which is not followed"

    def test_a_zip_bomb_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 40,)}
            )
            archive.writestr("x.npy", header.getvalue() + b"\0" * 1000)
        with pytest.raises(DataError, match=r"bomb\.npz"):
            list(open_samples(str(path)).samples())

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            pytest.param("{" * 3, "is no JSON", id="not JSON"),
            pytest.param('{"a":' * 5000 + "1" + "}" * 5000, "line 2", id="too deep"),
        ],
    )
    def test_a_bad_line_is_told_and_the_rest_goes_on(
        self, tmp_path: Path, line: str, said: str
    ) -> None:
        path = tmp_path / "x.jsonl"
        path.write_text('{"a": 1}\n' + line + '\n{"a": 2}\n')
        sound, problems = _keys(path)
        assert sound == ["line 1", "line 3"]
        assert said in problems[0]

    @pytest.mark.parametrize(
        "header",
        [
            pytest.param(b"{}", id="empty"),
            pytest.param(b"[" * 5000, id="deep"),
            pytest.param(
                json.dumps(
                    {
                        "header_size": 64,
                        "page_size": 64,
                        "schema": [{"schema": {}, "blob_fields": []}],
                        "page": [
                            {"page_type": "RAW_DATA", "page_id": 1 << 60, "page_type_id": 0,
                             "page_size": 1 << 60}
                        ],
                    }
                ).encode(),
                id="a page beyond the end",
            ),
        ],
    )  # fmt: skip
    def test_a_lying_mindrecord_is_refused(self, tmp_path: Path, header: bytes) -> None:
        from isograd.data.sources.mindrecord import MindRecordFiles

        path = tmp_path / "x.mindrecord"
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)
        try:
            items = list(MindRecordFiles([path], str(path)).samples())
        except DataError as error:
            said = str(error)
            assert "x.mindrecord" in said
            return
        assert [type(item) for item in items] == [Problem]
        assert "cut off" in items[0].what  # type: ignore[union-attr]


def test_an_unknown_file_says_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_bytes(b"hello world")
    with pytest.raises(DataError, match=r"x\.dat: is no data set that isograd knows\. Known are"):
        open_samples(str(path))


@given(st.binary(max_size=64))
def test_checksums_are_those_that_the_reader_of_summaries_computes(data: bytes) -> None:
    assert masked(crc32c()(data)) == masked_crc(data)
