"""Every example of the table of operators, forward and gradient, on both frameworks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.convert.graph.operators import functional, operators, written
from isograd.knowledge import load_knowledge
from isograd.knowledge.rewrite import NotRewritten

HERE = Path(__file__).parent
KEYS = [f"{t}#{n}" for t, row in operators().items() for n in range(len(row.examples))]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], ...]:
    folder = tmp_path_factory.mktemp("aten")
    subprocess.run([sys.executable, str(HERE / "aten_torch.py"), str(folder)], check=True)
    sources = json.loads((folder / "sources.json").read_text())
    codes = {key: written(key.partition("#")[0], given) for key, given in sources.items()}
    problems = {key: code.reason for key, code in codes.items() if isinstance(code, NotRewritten)}
    codes = {key: code for key, code in codes.items() if key not in problems}
    (folder / "codes.json").write_text(json.dumps(codes))
    subprocess.run([sys.executable, str(HERE / "aten_mindspore.py"), str(folder)], check=True)
    with np.load(folder / "torch.npz") as ours, np.load(folder / "mindspore.npz") as theirs:
        problems.update(json.loads((folder / "problems.json").read_text()))
        return dict(ours), dict(theirs), problems, codes


@pytest.mark.parametrize("key", KEYS)
def test_example_gives_what_torch_gives(executed: tuple[dict[str, Any], ...], key: str) -> None:
    ours, theirs, problems, codes = executed
    assert key not in problems, problems[key]
    names = [n for n in ours if n.startswith((f"{key}/out/", f"{key}/gradient/"))]
    assert names
    for name in names:
        assert name in theirs, f"{codes[key]} gives no {name}"
        assert theirs[name].shape == ours[name].shape, f"{codes[key]}: {name}"
        np.testing.assert_allclose(
            theirs[name].astype(np.float64),
            ours[name].astype(np.float64),
            rtol=2e-4,
            atol=2e-5,
            err_msg=f"{codes[key]}: {name}",
        )


@pytest.mark.parametrize("target", list(operators()))
def test_row_names_an_api_or_has_a_template(target: str) -> None:
    row = operators()[target]
    assert bool(row.api) != bool(row.template)
    assert not row.api or load_knowledge().find(row.api) is not None


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("aten.add_.Tensor", "aten.add.Tensor"),
        ("aten.relu_.default", "aten.relu.default"),
        ("aten.relu.default", "aten.relu.default"),
        ("aten.bernoulli_.float", "aten.bernoulli_.float"),
    ],
)
def test_operator_in_place_is_the_one_without_effect(target: str, meant: str) -> None:
    assert functional(target) == meant


def test_unknown_operator_is_said() -> None:
    assert isinstance(written("aten.no_such.default", {"self": "x"}), NotRewritten)
