"""Networks through torch.export into MindSpore, verified against themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from isograd.convert.graph.run import GraphConversion, convert_from_export
from isograd.convert.verifying import (
    BuilderResult,
    Outcome,
    VerifyOptions,
    parse_builder,
    parse_input,
    verify_builders,
)
from isograd.convert.verifying.places import place_of
from isograd.errors import UserCodeError

HERE = Path(__file__).parent
PLACE = place_of(HERE / "networks.py")


def converted(name: str, given: str, out: Path) -> GraphConversion:
    return convert_from_export(PLACE, parse_builder(f"networks:{name}"), out, [parse_input(given)])


def verified(name: str, given: str, found: GraphConversion, folder: Path) -> BuilderResult:
    (result,) = verify_builders(
        PLACE,
        place_of(folder / "port"),
        [parse_builder(f"networks:{name}")],
        VerifyOptions((parse_input(given),), (0,)),
        port_builders=[found.builder],
    )
    return result


@pytest.mark.parametrize(
    ("name", "given", "classes"),
    [
        ("Shared", "3x3x8x8", ["Block", "BatchNorm2d", "Conv2d", "DropPath", "Shared"]),
        ("Heads", "3x6:int64<11", ["Embedding", "MultiheadAttention", "LayerNorm", "Heads"]),
        ("Frozen", "4x6", ["Linear", "Frozen"]),
        ("Stored", "4x6", ["Stored"]),
        ("Recurrent", "3x2x4", ["LSTM", "GRU", "Recurrent"]),
        ("Several", "3x4", ["Several"]),
        ("Routed", "3x4", ["Linear", "Routed"]),
        ("Twice", "2x3x5", ["Linear", "Twice"]),
        ("Language", "2x7:int64<11", ["Rotary", "FloatNorm", "Layer", "Stack", "Language"]),
    ],
)
def test_network_is_equivalent(name: str, given: str, classes: list[str], tmp_path: Path) -> None:
    found = converted(name, given, tmp_path / "port")
    assert found.findings == ()
    text = found.files[0].read_text()
    tree = ast.parse(text)
    assert {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)} >= set(classes)
    for path in found.files:
        if path.suffix == ".py":
            imported = {
                alias.name if isinstance(node, ast.Import) else node.module
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for alias in node.names
            }
            assert not {str(m).partition(".")[0] for m in imported} & {"torch", "isograd"}
            assert max(map(len, path.read_text().splitlines())) <= 100
    # another batch than it was exported with
    result = verified(name, f"{int(given[0]) + 4}{given[1:]}", found, tmp_path)
    assert result.outcome is Outcome.EQUIVALENT, (result.first_problem, result.seeds[0].findings)
    assert result.paired
    assert result.seeds[0].by_name


def test_equal_modules_share_a_class(tmp_path: Path) -> None:
    text = converted("Shared", "3x3x8x8", tmp_path / "port").files[0].read_text()
    assert text.count("class BatchNorm2d") == 1
    assert text.count("class Linear") <= 1
    assert "self.twice(self.twice(" not in text  # one statement a line
    assert text.count("self.twice(") == 2


def test_unknown_operator_is_a_finding_with_its_place(tmp_path: Path) -> None:
    found = converted("Unknown", "5x2x4", tmp_path / "port")
    assert found.files == ()
    assert not (tmp_path / "port").exists()
    (finding,) = found.findings
    assert finding.code == "export.unknown-operator"
    assert "aten.hash_tensor" in finding.message
    assert finding.module == "inner.0"


def test_change_through_a_view_is_a_finding(tmp_path: Path) -> None:
    found = converted("Overwritten", "2x3", tmp_path / "port")
    assert [f.code for f in found.findings] == ["export.shared-memory"]
    assert found.files == ()


@pytest.mark.parametrize(
    ("name", "function", "is_derivative"),
    [("OwnGradient", "Rounded", False), ("TrueGradient", "Squared", True)],
)
def test_a_gradient_of_its_own_is_told_and_verified(
    name: str, function: str, is_derivative: bool, tmp_path: Path
) -> None:
    found = converted(name, "2x3", tmp_path / "port")
    (finding,) = found.findings
    assert finding.code == "export.own-gradient"
    assert function in finding.message
    outcome = verified(name, "2x3", found, tmp_path).outcome
    assert (outcome is Outcome.EQUIVALENT) == is_derivative


def test_a_parameter_that_forward_changes_is_a_finding(tmp_path: Path) -> None:
    found = converted("Follower", "2x3", tmp_path / "port")
    assert "export.changed-parameter" in {finding.code for finding in found.findings}
    assert "follower.weight" in found.findings[0].message


def test_what_does_not_build_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match="NoSuch"):
        converted("NoSuch", "2x3", tmp_path / "port")
