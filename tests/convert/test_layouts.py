"""Projects as people lay them out: scripts beside folders without `__init__.py`, and ports of them
that import, in the ways in which their originals are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from isograd.convert import Options, convert_path

_NET = """\
import torch
from torch import nn
from {parts} import act


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return act(self.fc(x)).max(1)[0] + x.std()
"""
_PARTS = (
    "import torch\n\n\ndef act(x):\n    return torch.relu(x).max(1, keepdim=True)[0] * x.std(0)\n"
)
_SCRIPT = "from {net} import Net\n\nNET = Net()\n"


@dataclass(frozen=True)
class Layout:
    """files: the project's.  converted: the folder of them that is converted.  below: where the
    port is put.  searched: what is on Python's path then, and module: what is imported."""

    files: dict[str, str]
    module: str
    searched: str = ""
    converted: str = ""
    below: str = ""


_LIBRARY = {
    "lib/__init__.py": "from .models.net import Net\n",
    "lib/models/net.py": _NET.format(parts="lib.models.parts"),
    "lib/models/parts.py": _PARTS,
}
LAYOUTS = {
    "a script beside a folder": Layout(
        {
            "train.py": _SCRIPT.format(net="models.net"),
            "models/net.py": _NET.format(parts="models.parts"),
            "models/parts.py": _PARTS,
        },
        "train",
    ),
    "the folder alone, which imports itself": Layout(
        {"models/net.py": _NET.format(parts="models.parts"), "models/parts.py": _PARTS},
        "models.net",
        converted="models",
        below="models",
    ),
    "a folder that imports itself and is called like a library of torch's": Layout(
        {"torch_nets/net.py": _NET.format(parts="torch_nets.parts"), "torch_nets/parts.py": _PARTS},
        "torch_nets.net",
        converted="torch_nets",
        below="torch_nets",
    ),
    "all below src": Layout(
        {
            "src/train.py": _SCRIPT.format(net="models.net"),
            "src/models/net.py": _NET.format(parts="models.parts"),
            "src/models/parts.py": _PARTS,
        },
        "train",
        searched="src",
    ),
    "scripts in folders of their own, each with its helpers": Layout(
        {
            "one/run.py": _SCRIPT.format(net="net"),
            "one/net.py": _NET.format(parts="parts"),
            "one/parts.py": _PARTS,
            "two/run.py": _SCRIPT.format(net="net"),
            "two/net.py": _NET.format(parts="parts"),
            "two/parts.py": _PARTS,
        },
        "run",
        searched="two",
    ),
    "relative imports without __init__.py": Layout(
        {
            "train.py": _SCRIPT.format(net="models.net"),
            "models/net.py": _NET.format(parts=".parts"),
            "models/parts.py": _PARTS,
        },
        "train",
    ),
    "a folder without __init__.py in a package": Layout(
        _LIBRARY,
        "lib",
    ),
    "the same package alone": Layout(
        _LIBRARY,
        "lib",
        converted="lib",
        below="lib",
    ),
    "folders below folders": Layout(
        {
            "train.py": _SCRIPT.format(net="models.deep.net"),
            "models/deep/net.py": _NET.format(parts="models.parts"),
            "models/parts.py": _PARTS,
        },
        "train",
    ),
    "torch by way of a file beside": Layout(
        {
            "src/train.py": _SCRIPT.format(net="models.net"),
            "src/models/common.py": "import torch\nfrom torch import nn\n",
            "src/models/net.py": "from models.common import torch, nn\n"
            + _NET.format(parts="models.parts").partition("\n")[2].partition("\n")[2],
            "src/models/parts.py": _PARTS,
        },
        "train",
        searched="src",
    ),
}
_IMPORT_ALL = """
import importlib, json, sys
import mindspore
before, path = set(sys.modules), list(sys.path)
for folder, module in json.loads(sys.argv[1]):
    sys.path[:] = [folder, *path]
    importlib.invalidate_caches()
    try:
        importlib.import_module(module)
        said = ""
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps(said))
    for name in set(sys.modules) - before:
        if not name.startswith("mindspore"):
            del sys.modules[name]
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What importing each port said."""
    asked = []
    for number, layout in enumerate(LAYOUTS.values()):
        folder = tmp_path_factory.mktemp(f"layout{number}")
        for file, text in layout.files.items():
            path = folder / "project" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        port = folder / "port"
        port.mkdir()
        report = convert_path(
            folder / "project" / layout.converted, port / layout.below, Options(force=True)
        )
        assert not [finding for file in report.files for finding in file.findings]
        asked.append((str(port / layout.searched), layout.module))
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("elsewhere"),
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    return dict(zip(LAYOUTS, lines, strict=True))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_port_is_imported_as_its_original_is(name: str, said: dict[str, str]) -> None:
    assert said[name] == ""


def test_a_folder_called_torch_hides_no_torch(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "net.py").write_text("import torch\n\nx = torch.relu(torch.ones(2))\n")
    (file,) = convert_path(tmp_path, None, Options(keep_texts=True)).files
    assert (file.uses, file.converted) == (2, 2)
