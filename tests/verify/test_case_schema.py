"""The JSON schema of a case file, its page, and the reader say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from isograd.errors import CaseError
from isograd.verify.case import case_of, tomllib
from isograd.verify.case_documentation import page
from isograd.verify.case_schema import TABLES, properties, schema

ROOT = Path(__file__).parents[2]
CASES = sorted(
    path
    for folder in ("examples", "benchmarks/verify", "benchmarks/faults")
    for path in (ROOT / folder).rglob("*.toml")
    if "[reference]" in path.read_text()
)
SIDES = {"reference": {"model": "a.py:A"}, "port": {"model": "b.py:B"}}


def _says(table: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the schema and the reader take a case."""
    by_schema = jsonschema.Draft202012Validator(schema()).is_valid(table)
    try:
        case_of(table, Path("case.toml"))
    except CaseError:
        return by_schema, False
    return by_schema, True


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for table in TABLES:
        assert [key for key, rule in properties(table).items() if "description" not in rule] == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_case_in_the_repository_fits(path: Path) -> None:
    found = jsonschema.Draft202012Validator(schema()).iter_errors(tomllib.loads(path.read_text()))
    assert [error.message for error in found] == []


X = {"shape": [2, 3]}


@pytest.mark.parametrize(
    ("table", "is_right"),
    [
        pytest.param({"inputs": [X]}, True, id="tensor"),
        pytest.param({"inputs": [{"shape": []}]}, True, id="scalar"),
        pytest.param({"inputs": "a.py:batch"}, True, id="callable"),
        pytest.param({"inputs": [{"value": "x"}, {"value": [1, 2]}]}, True, id="plain"),
        pytest.param({"inputs": [{"none": True}]}, True, id="none"),
        pytest.param({"inputs": [{"dict": {"a": X, "b": {"list": [X]}}}]}, True, id="containers"),
        pytest.param({"inputs": [X], "verify": {"mode": "eval", "steps": 1}}, True, id="verify"),
        pytest.param({"inputs": []}, False, id="no-inputs"),
        pytest.param({"inputs": [X], "verify": {"steps": 0}}, False, id="no-steps"),
        pytest.param({"inputs": [X], "verify": {"mode": "fast"}}, False, id="mode"),
        pytest.param({"inputs": [{"shape": [-1]}]}, False, id="negative"),
        pytest.param({"inputs": [{"shape": [1], "dtype": "float"}]}, False, id="dtype"),
        pytest.param({"inputs": [{"none": False}]}, False, id="none-false"),
        pytest.param({"inputs": [{"dict": [X]}]}, False, id="dict-of-list"),
        pytest.param({"inputs": [{"list": [{"shpae": [2]}]}]}, False, id="unknown-key-inside"),
        pytest.param({"inputs": [X], "weights": {"rename": {"a": 1}}}, False, id="rename"),
        pytest.param({"inputs": [X], "port": {"loss": "b.py:l"}}, False, id="no-model"),
    ],
)
def test_schema_and_reader_agree(table: dict[str, Any], is_right: bool) -> None:
    assert _says({**SIDES, **table}) == (is_right, is_right)


def test_the_page_is_written_from_the_schema() -> None:
    """A first user: every key beyond the example had to be guessed from error messages."""
    found = (ROOT / "docs" / "case.md").read_text()
    assert found == page(), "python -m isograd.verify.case_documentation > docs/case.md"


def test_every_example_of_the_page_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.ones(3, np.float32))
    examples = re.findall(r"```toml\n(.*?)```", page(), re.DOTALL)
    assert len(examples) == 4
    for text in examples:
        table = tomllib.loads(text)
        case_of({**SIDES, **table}, tmp_path / "case.toml")
