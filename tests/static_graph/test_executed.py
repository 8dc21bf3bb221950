"""What was executed of runtime functions counts for their copies in ports, and for nothing else."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from isograd.convert.generated import library
from isograd.knowledge.check.compiled import runtime_fingerprints
from isograd.scan.model import Hazard
from isograd.scan.run import scan_path
from isograd.static_graph.executed import RUNTIME_FILE, fingerprint
from isograd.static_graph.rule import SILENT
from isograd.static_graph.scope import FileScope

PORT = """
from mindspore import nn, ops
import semantics as compat

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
    def construct(self, x):
        return compat.{call}
"""
CALLS = {
    "topk": "topk(self.fc(x), 2)[0]",
    "unique_consecutive": "unique_consecutive(self.fc(x))",
    "eigvalsh": "eigvalsh(self.fc(x))",
    "compared": "compared(self.fc(x), x)",
}


def hazards(folder: Path, name: str, changed: tuple[str, str] = ("", "")) -> list[Hazard]:
    """What scan says of a port that calls one runtime function, whose copy may be changed."""
    folder.joinpath("net.py").write_text(PORT.format(call=CALLS[name]))
    text = library().module_of([*CALLS]).replace(*changed)
    folder.joinpath("semantics.py").write_text(text)
    report = scan_path(folder, use_cache=False)
    scan = next(file for file in report.files if file.file == "net.py")
    return [hazard for hazard in scan.hazards if hazard.code.startswith("compiled.")]


@pytest.mark.parametrize(
    ("name", "silent"),
    [pytest.param("unique_consecutive", True, id="gives something else"), ("eigvalsh", False)],
)
def test_an_executed_runtime_function_is_reported_at_its_call(
    tmp_path: Path, name: str, silent: bool
) -> None:
    (found,) = hazards(tmp_path, name)
    assert (found.code, found.line, found.is_silent) == ("compiled.runtime.call", 10, silent)
    assert f"{name} was executed so" in found.message


@pytest.mark.parametrize("name", ["compared", "topk"])
def test_one_that_compiles_is_not_reported_whatever_the_rules_say(
    tmp_path: Path, name: str
) -> None:
    assert hazards(tmp_path, name) == []


def test_a_changed_copy_is_not_what_was_executed(tmp_path: Path) -> None:
    found = hazards(tmp_path, "topk", ("np.arange(k)", "np.arange(0, k)"))
    assert {hazard.code for hazard in found} == {
        "compiled.named_tuple",
        "compiled.tensor.asnumpy",
    }


CLASS = """
class Layer:
    def construct(self, x):
        return x + 1

    def load_state_dict(self, values):
        return load(values)

def load(values):
    return values
"""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        pytest.param("return values", "return dict(values)", True, id="what only loading calls"),
        pytest.param("x + 1", "x + 2", False, id="what a graph calls"),
    ],
)
def test_how_a_layer_is_loaded_is_not_what_was_executed(old: str, new: str, is_same: bool) -> None:
    texts = CLASS, CLASS.replace(old, new)
    before, after = (fingerprint(FileScope(ast.parse(text)), "Layer") for text in texts)
    assert (before == after) is is_same


def test_the_table_is_of_the_runtime_functions_as_they_are() -> None:
    results = json.loads(RUNTIME_FILE.read_text(encoding="utf-8"))["results"]
    assert {name: row["of"] for name, row in results.items()} == runtime_fingerprints(results)
    assert {row["verdict"] for row in results.values()} <= {*SILENT, "same", "refused", "depends"}


def test_every_copy_in_a_port_is_known() -> None:
    """A port holds all that it uses in one file, where a local name may be a function's, too."""
    results = json.loads(RUNTIME_FILE.read_text(encoding="utf-8"))["results"]
    unknown = [
        name
        for name in results
        if fingerprint(FileScope(ast.parse(library().module_of([name]))), name)
        != results[name]["of"]
    ]
    assert unknown == []
