"""JSON by the contract, CSV, SARIF against its schema, HTML and text, with hostile names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.scan.support import Scanner

from isograd.report.render_html import render_html
from isograd.report.render_sarif import render_sarif
from isograd.report.render_text import render_text
from isograd.scan.data import COLUMNS, render_csv
from isograd.scan.document import document, page
from isograd.scan.model import ScanReport
from isograd.scan.summary import fails

SCHEMA = Path(__file__).parent / "data" / "sarif-schema-2.1.0.json"
CODE = """
import torch
import torch.nn as nn
net = nn.Conv2d(3, 30, 3)
x = torch.cat([torch.igamma(1, 2)]).view(2)
if x.sum() > 0:
    pass
"""
HOSTILE = "<script>alert(1)</script>\u202e=cmd"


@pytest.fixture
def report(scanner: Scanner) -> ScanReport:
    scanner.write(main=CODE)
    hostile = scanner.folder / f"{HOSTILE.replace('/', '')}.py"
    hostile.write_text(f"{CODE}\n'''</b><img src=x onerror=alert(1)> {HOSTILE}'''\n")
    (scanner.folder / "bad.py").write_text("def\n")
    return scanner.scan()


def test_json_is_that_of_the_contract(report: ScanReport) -> None:
    value = json.loads(report.to_json())
    assert (value["schema"], value["files"]) == ("isograd/scan/1", 2)
    assert value["lines"] == sum(scan.lines for scan in report.files)
    uses = [use for use in value["uses"] if use["file"] == "main.py"]
    by_api = {use["api"]: use for use in uses}
    assert by_api["torch.nn.Conv2d"] == {
        "file": "main.py", "line": 4, "column": 7, "api": "torch.nn.Conv2d", "status": "differs",
        "target": "mindspore.nn.Conv2d", "note": "pad_mode is 'same' by default", "how": "call",
        "effort": "needs a look",
        "verified": {"mindspore": "2.10.0", "torch": "2.13.0", "device": "CPU", "forward": True,
                     "gradient": True},
    }  # fmt: skip
    assert by_api["torch.igamma"]["status"] == "missing"
    assert by_api["torch.igamma"]["way"] == "custom operator"
    assert by_api["torch.Tensor.sum"]["status"] == "unknown"
    for hazard in value["hazards"]:
        assert {"code", "file", "line", "message", "advice"} <= set(hazard)
    assert {hazard["code"] for hazard in value["hazards"]} == {
        "data-dependent-branch", "ascend-channels", "ascend-float16",
    }  # fmt: skip
    (problem,) = value["problems"]
    assert (problem["code"], problem["file"], problem["line"]) == ("syntax-error", "bad.py", 1)
    assert value["summary"]["uses"]["missing"] == 2
    assert value["summary"]["share_of_names"] == pytest.approx(2 / 5)


def test_csv_has_a_row_for_each_and_no_formulas(report: ScanReport) -> None:
    text = render_csv(report)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == COLUMNS
    kinds = [row["kind"] for row in rows]
    assert kinds.count("use") == sum(len(scan.uses) for scan in report.files)
    assert kinds.count("hazard") == sum(len(scan.hazards) for scan in report.files)
    assert kinds.count("problem") == 1
    assert all(len(row) == len(COLUMNS) for row in csv.reader(io.StringIO(text)))
    assert all(cell[:1] not in ("=", "+", "-", "@") for row in rows for cell in row.values())


def test_sarif_fits_its_schema(report: ScanReport) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    value = json.loads(render_sarif(document(report)))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(value)
    (run,) = value["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["api-missing"] == "error"
    assert levels["api-differs"] == "warning"
    assert levels["data-dependent-branch"] == "warning"
    assert levels["ascend-channels"] == "note"
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
    }
    assert all(uri.isascii() and "<" not in uri and " " not in uri for uri in uris)


def test_the_page_escapes_every_name(report: ScanReport) -> None:
    drawn = render_html(page(report))
    assert "<script>" not in drawn
    assert "<img" not in drawn
    assert "\u202e" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "default-src 'none'" in drawn
    assert '<b class="warning">nn.Conv2d</b>' in drawn
    assert "data-dependent-branch" in drawn


def test_text_names_shares_costs_and_files(report: ScanReport) -> None:
    text = render_text(document(report), width=120)
    assert "\u202e" not in text
    assert "What costs most" in text
    assert "torch.igamma" in text
    assert "project/bad.py:1: file-syntax-error Python cannot parse it" in text
    last = text.strip().split("\n")[-1]
    assert "2 uses differ, 2 are missing" in last


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("import torch\ntorch.cat([])", set()),
        ("import torch\ntorch.igamma(1, 2)", {"missing"}),
        ("import torch.nn as nn\nnn.Conv2d(16, 16, 3)", {"differs"}),
        ("import torch.nn as nn\nnn.DataParallel(1)", {"hazard"}),
    ],
)
def test_what_fails(scanner: Scanner, code: str, kinds: set[str]) -> None:
    scanner.write(main=code)
    report = scanner.scan()
    for kind in ("missing", "differs", "hazard"):
        assert fails(report, [kind]) == (kind in kinds)


def test_what_was_not_scanned_always_fails(scanner: Scanner) -> None:
    scanner.write(main="def\n")
    assert fails(scanner.scan(), [])


def test_a_large_project_is_shown_in_excerpts(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isograd.scan.document.MOST_LINES", 10)
    scanner.write(main="import torch\n" + "a = 1\n" * 50 + "torch.igamma(1, 2)\n" + "b = 2\n" * 50)
    report = scanner.scan()
    drawn = render_html(page(report))
    assert drawn.count("a = 1") == drawn.count("b = 2") == 2
    assert "⋮" in drawn
