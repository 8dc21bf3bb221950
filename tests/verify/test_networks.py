"""Real networks in both frameworks: clean ports pass, and each stage finds a fault of its own."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from isograd.cli import main

pytest.importorskip("torch")
pytest.importorskip("mindspore")

SOURCE = Path(__file__).resolve().parents[2] / "benchmarks" / "verify" / "faults.py"
FAULTS = (
    "cnn-conv-bias-missing",
    "cnn-batch-norm-eps-first",
    "transformer-softmax-axis",
    "unet-interpolate-align-corners",
    "tagger-loss-ignore-index",
    "cnn-gradient-stopped",
    "tagger-optimizer-betas",
    "cnn-batch-norm-momentum",
    "tagger-dropout-active",
)
#: What the benchmark's cases have, and what is enough here.
SMALLER = {
    "steps = 6": 'steps = 3\ncompiled = "off"',
    "3, 32, 32]": "3, 16, 16]",
    "1, 32, 32]": "1, 16, 16]",
    "[2, 16]": "[2, 6]",
    "[4, 12]": "[4, 5]",
}


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("isograd_benchmark_faults", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def faults() -> ModuleType:
    """The benchmark's edits; its reader of TOML is Python 3.11's own."""
    if sys.version_info < (3, 11):
        pytest.skip("the benchmark needs Python 3.11")
    return _load()


def report_of(case: Path) -> tuple[int, Any]:
    """The answer of the eager stages; tests/verify/test_compiled.py is of the last one."""
    path = case.parent / "report.json"
    text = case.read_text()
    for before, after in SMALLER.items():
        text = text.replace(before, after)
    assert text.count("steps = 3") == 1
    case.write_text(text)
    status = main(["verify", str(case), "--quiet", "--json", str(path)])
    return status, json.loads(path.read_text())


@pytest.mark.parametrize("network", ["cnn", "transformer", "lstm_tagger", "unet"])
def test_a_clean_port_is_equivalent(network: str, faults: ModuleType, tmp_path: Path) -> None:
    status, report = report_of(faults.write_case(network, tmp_path / "case"))
    assert (status, report["verdict"], report["findings"]) == (0, "equivalent", [])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str, faults: ModuleType, tmp_path: Path) -> None:
    edit = next(edit for edit in faults.load() if edit.id == name)
    status, report = report_of(faults.write_case(edit.network, tmp_path / "case", edit))
    assert (status, report["verdict"]) == (1, "divergent")
    first = report["first_divergence"]
    assert first["stage"] in edit.stages
    if edit.module is not None:
        assert first["module"] == edit.module
