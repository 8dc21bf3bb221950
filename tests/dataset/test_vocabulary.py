"""Ids of tokens beside a vocabulary: each format is read, and a hostile file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isograd.cli import main
from isograd.data import run
from isograd.data.vocabulary import read_vocabulary
from isograd.errors import DataError

WORDS = {"[PAD]": 0, "[CLS]": 1, "the": 2, "##s": 3}
UNIGRAM = {"model": {"vocab": [["[PAD]", 0.0], ["[CLS]", 0.0], ["the", -1.5]]}}
ADDED = [{"id": 3, "content": "##s"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("vocab.txt", "[PAD]\r\n[CLS]\r\nthe\r\n##s\r\n", id="a token per line"),
        pytest.param("vocab.txt", "[PAD]\n[CLS]\nthe\n##s", id="no end of the last line"),
        pytest.param("vocab.json", json.dumps(WORDS), id="ids by token"),
        pytest.param("tokenizer.json", json.dumps({"model": {"vocab": WORDS}}), id="tokenizer"),
        pytest.param("tokenizer.json", json.dumps(UNIGRAM | {"added_tokens": ADDED}), id="scores"),
    ],
)
def test_ids_are_shown_as_tokens(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert read_vocabulary(path).decode(np.asarray([1, 2, 3, 9])) == "[CLS] the ##s ‹9›"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        pytest.param("vocab.json", b"[1, 2]", "no JSON object", id="a list"),
        pytest.param("vocab.json", b'{"a": ' + b"[" * 100_000, "recursion", id="deep nesting"),
        pytest.param("vocab.json", b'{"a": -1}', "has the id -1", id="a negative id"),
        pytest.param("vocab.json", b'{"a": 99999999999}', "has the id 9999", id="a huge id"),
        pytest.param("vocab.json", b'{"a": true}', "has the id True", id="no number"),
        pytest.param("vocab.json", b'{"a": 1, "b": 1}', "the same id 1", id="one id for two"),
        pytest.param("vocab.json", b"{}", "0 tokens", id="empty"),
        pytest.param("vocab.json", b'{"a": 1', "delimiter", id="truncated"),
        pytest.param("tokenizer.json", b'{"model": {"vocab": 3}}', "no vocab", id="no vocab"),
        pytest.param(
            "tokenizer.json",
            b'{"model": {"vocab": {"a": 0}}, "added_tokens": [3]}',
            "added_tokens",
            id="added tokens that are none",
        ),
        pytest.param("tokenizer.json", b'{"model": {"vocab": [3]}}', "no short text", id="score"),
        pytest.param("vocab.txt", b"\x80\x04\x95", "decode", id="no text"),
        pytest.param("vocab.txt", b"x" * 5000, "no short text", id="a long line"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: is no vocabulary .*{said}"):
        read_vocabulary(path)


def test_the_command_shows_ids_and_leaves_masks_as_they_are(tmp_path: Path) -> None:
    source, vocabulary, page = (tmp_path / n for n in ("a.jsonl", "vocab.json", "v.html"))
    source.write_text(json.dumps({"ids": [1, 2, 3, 0], "mask": [1, 1, 1, 0]}) + "\n")
    vocabulary.write_text(json.dumps(WORDS))
    options = ["--vocabulary", str(vocabulary), "--view", str(page), "--quiet"]
    main(["data", str(source), *options])
    assert "[CLS] the ##s [PAD]" in page.read_text()
    (shown,) = run.data(source, vocabulary=vocabulary).sources[0].shown
    assert set(shown.texts) == {"ids", "mask", "ids (tokens)"}


def test_a_missing_vocabulary_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    lost = str(tmp_path / "lost.txt")
    assert main(["data", str(tmp_path / "a.csv"), "--vocabulary", lost, "--quiet"]) == 2
    assert "lost.txt: is no vocabulary (No such file" in capsys.readouterr().err
