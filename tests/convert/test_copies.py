"""The generated modules of a port's folders, which are one in a process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.convert.support import converted, run_both, run_port

ASKING = """
from torch import nn


def asked(m):
    return [isinstance(m, nn.LeakyReLU), isinstance(m, nn.Bilinear), isinstance(m, nn.ModuleList)]
"""
MAKING = """
import torch
from torch import nn


class Act(nn.LeakyReLU):
    pass


def made():
    return [nn.LeakyReLU(0.1), Act(0.2), nn.Bilinear(2, 2, 2), nn.ModuleList([nn.ReLU()])]


def sizes(x):
    return torch.special.expit(x)
"""
KEPT = """
from torch import nn

KEPT = {"leaky": nn.LeakyReLU, "bilinear": nn.Bilinear, "list": nn.ModuleList}


def asked(m):
    return [isinstance(m, KEPT[name]) for name in ("leaky", "bilinear", "list")]


def made():
    return [KEPT["leaky"](0.1), KEPT["bilinear"](2, 2, 2), KEPT["list"]([])]
"""
RUN = "import json, run; print(json.dumps(run.told()))"


def told(makers: str, askers: str) -> str:
    return f"""
{makers}
{askers}

def told():
    makers, askers = {_names(makers)}, {_names(askers)}
    return [asker.asked(m) for asker in askers for maker in makers for m in maker.made()]
"""


def _names(imports: str) -> str:
    return "[" + ", ".join(line.split()[-1] for line in imports.strip().split("\n")) + "]"


@pytest.mark.parametrize(
    "files",
    [
        {  # a script beside packages, one with a package in it
            "run.py": told(
                "import layers", "import utils.ask as a\nfrom nets.parts import ask as b"
            ),
            "layers.py": KEPT,
            "utils/__init__.py": "",
            "utils/ask.py": ASKING,
            "nets/__init__.py": "",
            "nets/make.py": MAKING,
            "nets/parts/__init__.py": "",
            "nets/parts/ask.py": KEPT,
        },
        {  # packages alone
            "run.py": told("from nets import make", "from utils import ask"),
            "nets/__init__.py": "",
            "nets/make.py": KEPT,
            "utils/__init__.py": "",
            "utils/ask.py": KEPT,
        },
        {  # a script of another folder
            "run.py": "import sys\nsys.path.insert(0, 'tools')\n"
            + told("from nets import make", "import ask"),
            "nets/__init__.py": "",
            "nets/make.py": KEPT,
            "tools/ask.py": KEPT,
        },
    ],
)
def test_classes_are_the_same_in_all_folders(tmp_path: Path, files: dict[str, str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, files)
    assert not report.needs_action
    of_torch, of_port = run_both(tmp_path, port, RUN)
    assert of_port == of_torch


def test_a_package_runs_without_the_others(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    files = {"run.py": KEPT, "nets/__init__.py": "", "nets/make.py": MAKING}
    port, report = converted(tmp_path, files)
    written = {file for file, _ in report.compositions}
    assert written == {"nets/torch_semantics.py", "torch_semantics.py"}
    (tmp_path / "alone").mkdir()
    shutil.move(port / "nets", tmp_path / "alone/nets")
    said = run_port(tmp_path / "alone", "from nets import make; print(len(make.made()))")
    assert said.strip() == "4"


def test_one_module_says_nothing_of_copies(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"run.py": KEPT})
    assert "COPY_OF" not in (port / "torch_semantics.py").read_text()


BESIDE = {
    "run.py": "from layers import made\n\n\ndef told():\n    return len(made())\n",
    "layers.py": MAKING,
    "__init__.py": "",
}


@pytest.mark.parametrize(
    ("files", "imported"),
    [
        pytest.param(BESIDE, "import torch_semantics as compat", id="by bare names"),
        pytest.param(
            {**BESIDE, "more.py": "from .layers import made\n"},
            "from . import torch_semantics as compat",
            id="one relatively",
        ),
        pytest.param(
            {**BESIDE, "run.py": "from original.layers import made\n"},
            "from . import torch_semantics as compat",
            id="by the folder's name",
        ),
    ],
)
def test_scripts_of_a_folder_with_an_init_file(
    tmp_path: Path, files: dict[str, str], imported: str
) -> None:
    """An `__init__.py` makes no package of a folder whose files import each other as scripts."""
    port, _ = converted(tmp_path, files)
    assert imported in (port / "layers.py").read_text().splitlines()


def test_scripts_run_in_a_folder_with_an_init_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, _ = converted(tmp_path, BESIDE)
    of_torch, of_port = run_both(tmp_path, port, RUN)
    assert of_port == of_torch
