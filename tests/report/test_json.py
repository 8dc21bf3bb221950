"""The report as JSON keeps the contract's schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from isograd.model import Stage, VerifyReport


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


def _load(report: VerifyReport) -> dict[str, Any]:
    value = json.loads(report.to_json(), parse_constant=_refuse)
    assert isinstance(value, dict)
    return value


def test_json_is_the_golden_one(
    divergent_report: VerifyReport, check_golden: Callable[[str, str], None]
) -> None:
    check_golden("divergent.json", divergent_report.to_json())


def test_schema_of_the_contract(divergent_report: VerifyReport) -> None:
    value = _load(divergent_report)
    assert value["schema"] == "isograd/verify/1"
    assert value["verdict"] == "divergent"
    assert [entry["stage"] for entry in value["stages"]] == [stage.value for stage in Stage]
    assert set(value["stages"][0]) == {"stage", "verdict", "checked", "seconds", "detail"}
    assert value["first_divergence"] == {
        "stage": "forward",
        "module": "encoder.layer.3.attn",
        "step": 0,
        "ratio": 41234.0,
    }
    finding = value["findings"][1]
    assert {"code", "severity", "stage", "module", "message", "cause", "fix"} <= set(finding)
    assert finding["cause"] == {
        "id": "batch_norm.eps",
        "reference": 1e-05,
        "port": 0.001,
        "alpha": 1.0,
        "interval": [0.99, 1.01],
        "proved": False,
        "alternatives": ["batch_norm.unbiased"],
        "text": "batch_norm with eps 0.001 instead of 1e-05",
    }
    fix = finding["fix"]
    assert (fix["text"], fix["where"]) == ("set eps=1e-05", "net_mindspore.py:41")
    assert (fix["edits"], fix["is_edit"]) == ([], False)
    assert value["findings"][2]["cause"] is None
    assert value["findings"][3]["severity"] == "below-noise"


def test_nothing_diverges_is_null(equivalent_report: VerifyReport) -> None:
    assert _load(equivalent_report)["first_divergence"] is None


@pytest.mark.parametrize("key", ["modules", "gaps", "losses", "notes", "thresholds", "sides"])
def test_further_keys_are_there(key: str, divergent_report: VerifyReport) -> None:
    assert _load(divergent_report)[key]


def test_numbers_that_are_not_finite_are_null(hostile_report: VerifyReport) -> None:
    value = _load(hostile_report)
    assert value["findings"][0]["ratio"] is None
    assert value["findings"][0]["cause"]["interval"] == [None, None]
    assert value["losses"]["reference"] == [1.0, None]


def test_json_is_ascii(hostile_report: VerifyReport) -> None:
    assert hostile_report.to_json().isascii()
