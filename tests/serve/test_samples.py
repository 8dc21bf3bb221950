"""Samples of a data set, a page at a time, in their order and as a choice with findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.serve.conftest import TOKEN

from isograd.data.sources.open import open_samples
from isograd.serve.app import make_app
from isograd.serve.catalogue import Catalogue

COUNT = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty images of two classes, of which one is damaged and two are equal."""
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        path = tmp_path / "pets" / ("cat", "dog<b>")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (12, 12, 3)).astype(np.uint8)
        Image.fromarray(np.zeros_like(pixels) + 7 if number in (4, 6) else pixels).save(path)
    (tmp_path / "pets" / "cat" / "02.png").write_bytes(b"no image")
    return tmp_path


@pytest.fixture
def browser(folder: Path) -> Iterator[TestClient]:
    app = make_app(Catalogue([folder]), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8765") as found:
        found.get(f"/?token={TOKEN}")
        yield found


def shown(page: str) -> list[dict[str, Any]]:
    """The samples that a page holds."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    found: list[dict[str, Any]] = json.loads(match[1])
    return found


def test_the_page_of_a_data_set_leads_to_its_samples(browser: TestClient) -> None:
    assert 'href="../samples?of=pets"' in browser.get("/dataset/pets").text


def test_pages_hold_every_sample_once_in_order(browser: TestClient) -> None:
    keys: list[str] = []
    start = 0
    while page := shown(browser.get(f"/samples?of=pets&start={start}").text):
        keys += [one["key"] for one in page]
        start += 24
    assert sorted(keys) == sorted(f"{k}/{n:02d}.png" for n in range(COUNT) for k in [_kind(n)])
    assert keys[0] == "cat/00.png"


def _kind(number: int) -> str:
    return ("cat", "dog<b>")[number % 2]


def test_a_damaged_sample_says_why(browser: TestClient) -> None:
    page = shown(browser.get("/samples?of=pets&start=0").text)
    (damaged,) = [one for one in page if one["key"] == "cat/02.png"]
    assert damaged["codes"] == ["data.corrupt"]
    assert "image" in damaged["texts"][0][1]


def test_the_choice_has_the_findings_of_the_inventory(browser: TestClient) -> None:
    page = browser.get("/samples?of=pets").text
    assert "A choice of 48 among the first 59 samples." in page
    assert {code for one in shown(page) for code in one["codes"]} <= {
        "data.duplicate", "data.constant", "data.near_duplicate"
    }  # fmt: skip
    assert "start=0" in page


def test_only_the_pages_own_script_may_run_and_names_are_text(browser: TestClient) -> None:
    answer = browser.get("/samples?of=pets&start=0")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy
    assert "'unsafe-inline'; img-src data:" in policy
    assert "<b>" not in answer.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        pytest.param("/samples?of=nothing", 404, id="no such data set"),
        pytest.param("/samples", 404, id="none is named"),
        pytest.param("/samples?of=..%2F..%2Fetc", 404, id="outside of the folders"),
        pytest.param("/samples?of=pets&start=99999", 200, id="behind the end"),
        pytest.param("/samples?of=pets&start=-4", 200, id="before the beginning"),
        pytest.param("/samples?of=pets&start=" + "9" * 40, 200, id="no number of a sample"),
    ],
)
def test_other_addresses(browser: TestClient, address: str, status: int) -> None:
    assert browser.get(address).status_code == status


def test_samples_are_not_answered_without_the_token(folder: Path) -> None:
    with TestClient(make_app(Catalogue([folder]), TOKEN), base_url="http://127.0.0.1:1") as other:
        assert other.get("/samples?of=pets").status_code == 401


def test_files_before_a_page_are_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_samples(str(folder / "pets"))
    opened: list[Path] = []
    original = Path.open

    def counted(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    assert [item.key for item in source.window(50, 3)] == [
        "dog<b>/41.png", "dog<b>/43.png", "dog<b>/45.png"
    ]  # fmt: skip
    assert len(opened) == 3
