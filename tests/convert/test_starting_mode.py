"""A network of a port starts in training, as torch's does, however its class is reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both, run_original, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

#: Three projects, because one look-up by a name decides for a whole project; `made()` of each
#: file gives modules.
_STYLES = Path(__file__).with_name("starting_modes.txt")
_MODES = """
import importlib, json, sys
found = {}
for project, names in PROJECTS.items():
    sys.path.insert(0, f"ROOT/{project}/FOLDER")
    for name in [*names, "torch_semantics"]:
        sys.modules.pop(name, None)
    for name in names:
        modes = []
        for net in importlib.import_module(name).made():
            for _, part in WALK:
                if type(part).__name__ in ("Dropout", "BatchNorm1d", "Net"):
                    modes.append([type(part).__name__, bool(part.training)])
        found[f"{project}/{name}"] = sorted(modes)
for name in sorted(found):
    print(name, json.dumps(found[name]))
"""
_HEAD = "import torch\nfrom torch import nn\n\n\n"


def test_every_layer_starts_in_torchs_mode(tmp_path: Path) -> None:
    projects: dict[str, dict[str, str]] = {}
    parts = re.split(r"^==== (\w+)/(\w+)\.py\n", _STYLES.read_text(), flags=re.MULTILINE)[1:]
    for project, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        projects.setdefault(project, {})[name] = text
    for project, texts in projects.items():
        files = {f"{name}.py": text for name, text in texts.items()}
        _, report = converted(tmp_path / project, files)
        assert not [one for one in report.findings if one.code != "look"]
    names = {project: list(texts) for project, texts in projects.items()}
    code = _MODES.replace("PROJECTS", repr(names)).replace("ROOT", str(tmp_path))
    (tmp_path / "original").mkdir()
    of_torch = code.replace("FOLDER", "original").replace("WALK", "net.named_modules()")
    of_port = code.replace("FOLDER", "port").replace("WALK", "net.cells_and_names()")
    expected = run_original(tmp_path, of_torch).splitlines()
    found = run_port(tmp_path, of_port).splitlines()
    assert len(expected) == sum(map(len, names.values()))
    assert all("true" in line for line in expected)
    assert found == expected


_HANDED_IN = """
import torch
from torch import nn

class Wrap(nn.Module):
    def __init__(self, model, scale=3, *more):
        super().__init__()
        self.model, self.drop, self.scale = model, nn.Dropout(0.5), scale

    def forward(self, x):
        return self.model(x) * self.scale

class Plain(nn.Module):
    def __init__(self, cfg, width, depth):
        super().__init__()
        self.width, self.depth = width, depth
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        for _ in range(self.depth):
            x = x[:, :self.width]
        return self.norm(x)

class Derived(Wrap):
    def more(self, x):
        return self(x)

TABLE = {"wrap": Wrap}

def make():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))

def load():
    net = make()
    net.eval()
    return net

def modes(net):
    return [int(part.training) for part in net.modules()]

def made():
    found = [Wrap(load()), TABLE["wrap"](load()), nn.Sequential(load(), nn.BatchNorm1d(2))]
    found.append(nn.ModuleList([load(), make()]))
    kept = {"teacher": make()}
    kept["teacher"].eval()
    found.append(Wrap(kept["teacher"]))
    found.append(Derived(load()))
    fresh = make()
    found.append(Wrap(fresh))
    vgg = nn.Sequential(nn.Dropout())
    vgg.eval()
    found.append(nn.Sequential(vgg, nn.ReLU()))
    found.append(Plain(None, 3, int("2")))
    for part in [make()]:
        part.train(False)
        found.append(Wrap(part, 3))
    found.append(nn.Sequential(*[load() for _ in range(2)], nn.Dropout()))
    found.append(Wrap(Wrap(load())))
    return [modes(one) for one in found]
"""


def test_a_module_keeps_the_mode_of_what_it_is_handed(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _HANDED_IN})
    assert not [one for one in report.findings if one.code != "look"]
    assert 'Plain(None, 3, int("2")).set_train()' in (port / "net.py").read_text()
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.made()))")
    assert found == expected


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param(
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.teacher = nn.Dropout()\n        self.teacher.eval()\n",
            "mode-while-building",
            id="a constructor sets a part to inference",
        ),
    ],
)
def test_a_part_in_inference_is_reported(source: str, code: str) -> None:
    _, findings = port_of(_HEAD + source)
    assert [one.code for one in findings] == [code]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc = nn.Linear(2, 3)\n",
            id="nothing has modes",
        ),
        pytest.param("net = nn.Sequential(nn.Dropout()).eval()\n", id="the mode is said at once"),
    ],
)
def test_no_mode_is_set(source: str) -> None:
    port, findings = port_of(_HEAD + source)
    assert not findings
    assert "set_train()" not in port
