"""The inventory, the health of tensors, and the correspondence of two checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.open import open_source
from isograd.cli import main
from isograd.weights.correspondence import report_of
from isograd.weights.health import health_of, issues_of


def _codes(values: np.ndarray) -> set[str]:
    tensor = RawTensor(values, str(values.dtype))
    return {issue.code for issue in issues_of("w", tensor.dtype, values.shape, health_of(tensor))}


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (np.ones((2, 2), np.float32), {"params.constant"}),
        (np.zeros((2, 2), np.float32), {"params.zero"}),
        (np.zeros(4, np.float32), set()),
        (np.array([[1, np.nan], [2, 3]], np.float32), {"params.nan"}),
        (np.array([1, -np.inf], np.float64), {"params.inf"}),
        (np.array([[0, 0], [2, 3]], np.float32), {"params.dead"}),
        (np.array([1, 1e-40], np.float32), {"params.denormal"}),
        (np.array([1, 1e30], np.float32), {"params.large"}),
        (np.array([1e-12, 2e-12], np.float32), {"params.small"}),
        (np.array([1 + 1j * np.nan], np.complex64), {"params.nan"}),
        (np.zeros((0, 3), np.float32), set()),
        (np.array(2.0, np.float32), set()),
        (np.zeros((3, 3), np.int64), set()),
    ],
)
def test_health(values: np.ndarray, codes: set[str]) -> None:
    assert _codes(values) == codes


def test_a_nan_in_the_middle_of_many_is_found() -> None:
    values = np.ones(3_000_000, np.float32)
    values[1_500_000] = np.nan
    assert "params.nan" in _codes(values)


def test_totals_and_shares(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"a.w": np.ones((3, 4), np.float32), "b.w": np.arange(4, dtype=np.int64)}, path)
    inventory = report_of(open_source(path)).first
    assert (inventory.elements, inventory.size_bytes) == (16, 80)
    assert [(share.name, share.size_bytes) for share in inventory.by_module] == [
        ("a", 48),
        ("b", 32),
    ]


def test_two_frameworks_correspond(tmp_path: Path) -> None:
    first = {
        "bn.weight": np.ones(4, np.float32),
        "bn.bias": np.zeros(4, np.float32),
        "bn.running_mean": np.zeros(4, np.float32),
        "bn.running_var": np.ones(4, np.float32),
        "bn.num_batches_tracked": np.array(1),
        "extra.weight": np.ones((9, 2), np.float32),
    }
    second = {
        "bn.gamma": np.ones(4, np.float32),
        "bn.beta": np.zeros(4, np.float32),
        "bn.moving_mean": np.zeros(4, np.float32),
        "bn.moving_variance": np.ones(4, np.float32),
    }
    save_file(first, tmp_path / "a.safetensors")
    save_file(second, tmp_path / "b.safetensors")
    report = report_of(
        open_source(tmp_path / "a.safetensors"), open_source(tmp_path / "b.safetensors")
    )
    assert report.pairing is not None
    pairs = {pair.reference[0]: pair.port[0] for pair in report.pairing.pairs}
    assert pairs == {
        "bn.weight": "bn.gamma",
        "bn.bias": "bn.beta",
        "bn.running_mean": "bn.moving_mean",
        "bn.running_var": "bn.moving_variance",
    }
    assert report.pairing.unpaired_reference == ("extra.weight",)
    assert report.needs_action


def test_a_bias_keeps_its_name_beside_a_computed_weight(tmp_path: Path) -> None:
    """The length of a weight norm and a vector of a spectral norm have the sizes of a bias."""
    first = {
        "wn.bias": np.zeros(4, np.float32),
        "wn.parametrizations.weight.original0": np.ones((4, 1), np.float32),
        "wn.parametrizations.weight.original1": np.ones((4, 4), np.float32),
        "sn.bias": np.zeros(4, np.float32),
        "sn.weight_orig": np.ones((4, 4), np.float32),
        "sn.weight_u": np.ones(4, np.float32),
        "sn.weight_v": np.ones(4, np.float32),
    }
    second = {
        f"{module}.{name}": np.ones(shape, np.float32)
        for module in ("wn", "sn")
        for name, shape in (("weight", (4, 4)), ("bias", (4,)))
    }
    save_file(first, tmp_path / "a.safetensors")
    save_file(second, tmp_path / "b.safetensors")
    report = report_of(
        open_source(tmp_path / "a.safetensors"), open_source(tmp_path / "b.safetensors")
    )
    assert report.pairing is not None
    pairs = {pair.reference[0]: pair.port[0] for pair in report.pairing.pairs}
    assert {pairs.get("wn.bias"), pairs.get("sn.bias")} == {"wn.bias", "sn.bias"}
    assert "wn.parametrizations.weight.original0" in report.pairing.unpaired_reference
    assert not any(name.endswith((".weight_u", ".weight_v")) for name in pairs)


def test_an_embedding_under_a_name_that_does_not_tell(tmp_path: Path) -> None:
    """A matrix without a bias is a Linear's or an Embedding's; a conversion is no later step."""
    table, values = np.ones((9, 3), np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    rest = {"fc.weight": values, "fc.bias": values[0]}
    save_file({"tok.weight": table, **rest}, tmp_path / "a.safetensors")
    save_file({"tok.embedding_table": table, **rest}, tmp_path / "b.safetensors")
    for names in ("ab", "ba"):
        sources = [open_source(tmp_path / f"{name}.safetensors") for name in names]
        report = report_of(*sources)
        assert report.pairing is not None
        assert len(report.pairing.pairs) == 3
        assert report.change_issues == ()
        assert not report.needs_action


def test_two_steps(tmp_path: Path) -> None:
    values = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    save_file({"still": values, "small": values, "large": values}, tmp_path / "a.safetensors")
    save_file(
        {"still": values, "small": values * np.float32(1.00001), "large": values * 2},
        tmp_path / "b.safetensors",
    )
    report = report_of(
        open_source(tmp_path / "a.safetensors"), open_source(tmp_path / "b.safetensors")
    )
    assert {(issue.code, issue.name) for issue in report.change_issues} == {
        ("params.unchanged", "still"),
        ("params.change_small", "small"),
        ("params.change_large", "large"),
    }


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"[red]<b>.w": np.array([[1.0, np.nan]], np.float32)}, path)
    assert main(["params", str(path)]) == 1
    assert "[red]<b>.w: 1 of 2 numbers are NaN [params.nan]" in capsys.readouterr().out
    assert main(["params", str(path), "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["schema"] == "isograd/params/1"
    assert main(["params", str(path), "--names-only", "--quiet"]) == 0
    path.write_bytes(b"broken")
    assert main(["params", str(path)]) == 2
    assert str(path) in capsys.readouterr().err
