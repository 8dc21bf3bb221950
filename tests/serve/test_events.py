"""Event files: indexed without being read whole, histograms and images drawn."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from isograd.compare.files.event_file import masked_crc
from isograd.report.document import Chart, Group, Pictures
from isograd.serve.catalogue import Catalogue
from isograd.serve.event_index import read_index
from isograd.serve.event_media import decoded_histogram
from isograd.serve.model import Kind
from isograd.serve.pages import page_of


def record(data: bytes) -> bytes:
    """One record as TensorBoard and MindSpore frame it."""
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))


def tagged(number: int, content: bytes) -> bytes:
    """A field of protobuf that holds bytes."""
    size, head = len(content), b""
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + head + bytes([size]) + content


def event(step: int, value: bytes) -> bytes:
    """An event with one value in its summary."""
    time = b"\x09" + struct.pack("<d", 1.0)
    number = bytes([0x10]) + (bytes([step & 127 | 128, step >> 7]) if step > 127 else bytes([step]))
    return record(time + number + tagged(5, tagged(1, value)))


def scalar(step: int, tag: str, value: float) -> bytes:
    return event(step, tagged(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def png(size: int = 2) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (size, size), (10, 200, 30)).save(stream, "PNG")
    return stream.getvalue()


def test_a_page_draws_scalars_histograms_and_images(events: Path) -> None:
    catalogue = Catalogue([events])
    (item,) = catalogue.of_kind(Kind.EVENTS)
    page = page_of(item, catalogue)
    assert page.outcome.sentence == "1 scalars, 1 histograms, 1 images."
    (group,) = [one for one in page.sections if isinstance(one, Group)]
    chart = group.sections[0]
    assert isinstance(chart, Chart)
    middle = chart.series[0]
    assert list(middle.x) == [0, 1, 2, 3, 4]
    assert np.array(middle.y) == pytest.approx(np.arange(5.0), abs=0.1), "the median"
    (pictures,) = [one for one in page.sections if isinstance(one, Pictures)]
    assert [one.caption for one in pictures.pictures] == [f"step {step}" for step in range(5)]
    assert all(one.content.startswith(b"\x89PNG") for one in pictures.pictures)


def test_the_page_of_events_is_served(events: Path, client: TestClient) -> None:
    (item,) = Catalogue([events]).of_kind(Kind.EVENTS)
    page = client.get(f"/{item.address}").text
    assert page.count('src="data:image/png;base64,') == 5


def test_mindspores_histograms_are_read() -> None:
    buckets = b"".join(
        tagged(
            1, b"\x09" + struct.pack("<d", left) + b"\x11" + struct.pack("<d", 0.5) + b"\x18\x02"
        )
        for left in (0.0, 0.5)
    )
    one = decoded_histogram(tagged(1, b"w") + tagged(9, buckets), 3)
    assert one is not None
    assert one.edges.tolist() == [0.0, 0.5, 1.0]
    assert one.counts.tolist() == [2.0, 2.0]
    assert one.at_shares((0.0, 0.5, 1.0)).tolist() == [0.0, 0.5, 1.0]


def test_mindspores_summary_file_has_its_images(tmp_path: Path) -> None:
    path = tmp_path / "x.events.summary.1"
    image = tagged(1, b"input/auto") + tagged(4, b"\x08\x02\x10\x02\x18\x03" + tagged(4, png()))
    loss = tagged(1, b"loss/auto") + b"\x1d" + struct.pack("<f", 0.5)
    path.write_bytes(record(b"\x1a\x11MindSpore.Event:1") + event(1, loss) + event(2, image))
    index = read_index(path)
    assert index.scalars == {"loss/auto": [(1, 0.5)]}
    assert [place.step for place in index.images["input/auto"]] == [2]


def test_fifty_gigabytes_are_indexed_without_being_read(tmp_path: Path) -> None:
    """A sparse file: small records around two large ones, of which the first bytes are read."""
    path = tmp_path / "events.out.tfevents.1"
    large = (1 << 31) - 4_096
    with path.open("wb") as file:
        for step in range(25):
            file.write(scalar(step, "loss", float(step)))
            image = tagged(1, b"big") + bytes([4 << 3 | 2])
            head = struct.pack("<Q", large)
            file.write(head + struct.pack("<I", masked_crc(head)))
            start = file.tell()
            file.write(b"\x09" + bytes(8) + bytes([0x10, step, 5 << 3 | 2]) + length(large - 17))
            file.write(bytes([1 << 3 | 2]) + length(large - 23) + image + length(large - 34))
            file.seek(start + large + 4)
        file.write(scalar(25, "loss", 25.0))
    assert path.stat().st_size > 50e9
    index = read_index(path)
    assert index.scalars["loss"] == [(step, float(step)) for step in range(26)]
    assert len(index.images["big"]) == 25
    assert index.read_bytes < 10e6


def length(size: int) -> bytes:
    """A length in five bytes, however small."""
    return bytes([size >> shift & 127 | 128 for shift in (0, 7, 14, 21)]) + bytes([size >> 28])


def test_of_too_many_small_records_some_at_equal_distances_are_read(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"".join(scalar(step, "loss", float(step)) for step in range(16_000)))
    index = read_index(path, most_bytes=200_000)
    assert not index.is_complete
    assert index.read_bytes < path.stat().st_size
    steps = [step for step, _ in index.scalars["loss"]]
    assert steps[0] == 0
    assert steps[-1] == 15_999, "the last record is always read"
    assert all(value == step for step, value in index.scalars["loss"])


def test_an_image_that_declares_too_many_pixels_is_left_out(tmp_path: Path) -> None:
    from isograd.serve.event_media import decoded_images

    bomb = png()[:16] + struct.pack(">II", 60_000, 60_000) + png()[24:]
    value = tagged(1, b"t") + tagged(4, tagged(4, bomb))
    assert decoded_images(value) == []
    assert decoded_images(tagged(4, tagged(4, png()))) == [png()]
    assert decoded_images(tagged(4, tagged(4, b"<svg onload='x()'>"))) == []
