"""A notebook becomes a notebook: cells in their order, names shared, IPython's lines kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isograd.convert import ConvertReport, convert_path


def _notebook(*cells: str | dict[str, Any]) -> str:
    made = [
        cell
        if isinstance(cell, dict)
        else {
            "cell_type": "code",
            "execution_count": 7,
            "metadata": {"tags": ["kept"]},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "42"}],
            "source": cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    return json.dumps({"cells": made, "metadata": {"own": "é"}, "nbformat": 4, "nbformat_minor": 5})


def _converted(folder: Path, *cells: str | dict[str, Any]) -> tuple[list[str], ConvertReport]:
    path = folder / "net.ipynb"
    path.write_text(_notebook(*cells), encoding="utf-8")
    report = convert_path(path, folder / "out")
    port = json.loads((folder / "out" / "net.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in port["cells"]], report


def test_names_are_shared_over_cells(tmp_path: Path) -> None:
    sources, report = _converted(
        tmp_path,
        "import torch",
        "x = torch.ones(3)\ny = x",
        "x.add_(1)",
    )
    assert sources == [
        "import mindspore as ms\nfrom mindspore import ops",
        "x = ops.ones(3, dtype=ms.float32)\ny = x",
        "x[...] = x + 1",
    ]
    assert not report.findings


def test_outputs_are_cleared_and_the_rest_is_kept(tmp_path: Path) -> None:
    markdown = {"cell_type": "markdown", "metadata": {}, "source": ["# torch.ones\n", "text"]}
    _converted(tmp_path, markdown, "import torch\nx = torch.ones(3)")
    port = json.loads((tmp_path / "out" / "net.ipynb").read_text(encoding="utf-8"))
    assert port["cells"][0] == markdown
    assert port["metadata"] == {"own": "é"}
    code = port["cells"][1]
    assert (code["outputs"], code["execution_count"]) == ([], None)
    assert code["metadata"] == {"tags": ["kept"]}


@pytest.mark.parametrize(
    ("cell", "port"),
    [
        pytest.param("%matplotlib inline", "%matplotlib inline", id="magic"),
        pytest.param("!pip install timm", "!pip install timm", id="shell"),
        pytest.param("files = !ls *.py", "files = !ls *.py", id="shell-bound"),
        pytest.param("x?", "x?", id="question"),
        pytest.param("%%bash\nls | wc", "%%bash\nls | wc", id="another-language"),
        pytest.param("%time y = torch.relu(x)", "%time y = ops.relu(x)", id="timed"),
        pytest.param("%%time\ny = torch.relu(x)", "%%time\ny = ops.relu(x)", id="timed-cell"),
        pytest.param("if 1:\n    !ls", "if 1:\n    !ls", id="in-a-block"),
        pytest.param("# %% cell 2\ny = 1", "# %% cell 2\ny = 1", id="looks-like-a-marker"),
    ],
)
def test_ipythons_lines_are_kept(cell: str, port: str, tmp_path: Path) -> None:
    sources, report = _converted(tmp_path, "import torch\nx = torch.zeros(2)", cell)
    assert sources[1] == port
    assert not report.findings


def test_a_finding_has_its_cell_and_the_line_there(tmp_path: Path) -> None:
    sources, report = _converted(
        tmp_path,
        "import torch",
        "x = torch.ones(4)\ny = x.view(2, 2)",
        "z = 1\ny.mul_(2)",
        "print(",
        "%%writefile net.py\nimport torch",
    )
    assert [(f.code, f.cell, f.line) for f in report.findings] == [
        ("in-place-view", 3, 2),
        ("syntax-error", 4, 1),
        ("notebook-cell", 5, 1),
    ]
    assert sources[3] == "print("
    data = report.to_data()["findings"]
    assert (data[0]["cell"], data[0]["line"]) == (3, 2)


def test_what_is_no_notebook_is_copied_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "net.ipynb"
    path.write_text('{"cells": 3}', encoding="utf-8")
    report = convert_path(path, tmp_path / "out")
    assert [finding.code for finding in report.findings] == ["notebook"]
    assert (tmp_path / "out" / "net.ipynb").read_text(encoding="utf-8") == '{"cells": 3}'


def test_a_notebook_uses_the_modules_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nets.py").write_text("import torch\n\ndef made():\n    return torch.ones(2)\n")
    cells = "from nets import made\nimport torch\nx = made()\nr = x.relu_()"
    (folder / "run.ipynb").write_text(_notebook(cells), encoding="utf-8")
    report = convert_path(folder, tmp_path / "out")
    port = json.loads((tmp_path / "out" / "run.ipynb").read_text(encoding="utf-8"))
    assert "from nets import made" in "".join(port["cells"][0]["source"])
    assert {file.file for file in report.files} == {"nets.py", "run.ipynb"}
