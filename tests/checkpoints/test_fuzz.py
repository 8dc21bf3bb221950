"""Damaged files of every format: a CheckpointError or the tensors, never anything else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.checkpoints.conftest import MAKERS

from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError

_SETTINGS = settings(
    max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def _read_all(path: Path) -> None:
    """Read everything; a refusal must name the file and end in advice."""
    refused = None
    try:
        with open_source(path) as source:
            source.verify()
            for info in source:
                value = source.read(info.name)
                assert value.shape == info.shape
    except CheckpointError as error:
        refused = error
    if refused is not None:
        assert str(path.parent) in str(refused)
        assert refused.advice


@pytest.mark.parametrize("kind", MAKERS)
@_SETTINGS
@given(data=st.data())
def test_flipped_bytes(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = MAKERS[kind](Path(folder))
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        _read_all(path)


@pytest.mark.parametrize("kind", MAKERS)
@_SETTINGS
@given(data=st.data())
def test_truncated_and_grown(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = MAKERS[kind](Path(folder))
        content = path.read_bytes()
        end = data.draw(st.integers(0, len(content)))
        inserted = data.draw(st.binary(max_size=16))
        again = data.draw(st.booleans())
        path.write_bytes(content[:end] + inserted + (content[end:] if again else b""))
        _read_all(path)


@pytest.mark.parametrize("kind", MAKERS)
def test_every_truncation_is_refused(kind: str, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path)
    content = path.read_bytes()
    for end in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:end])
        if kind == "ckpt" and end:
            _read_all(path)  # a file that ends after a parameter is a shorter checkpoint
            continue
        with pytest.raises(CheckpointError):
            open_source(path)
