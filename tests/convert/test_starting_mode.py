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


#: Classes of one name, one of which keeps what it is handed; bases that do, in another file.
_BASES = """
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim, rope=None, device=None):
        super().__init__()
        self.rope, self.drop = rope, nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.rope(x))

class Open(nn.Module):
    def __init__(self, *parts, **named):
        super().__init__()
        self.parts, self.net = nn.ModuleList(parts), named.get("net")
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return self.drop(x)

class Layer(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2
"""
_OF_BASES = """
from collections import OrderedDict
import torch
from torch import nn
import bases
from bases import Layer, Open

class Attention(nn.Module):
    def __init__(self, dim, rope=None, cfg=None, device=None):
        super().__init__()
        self.width = 2 if rope else 1
        self.norm = nn.BatchNorm1d(dim)
        for number in range(2):
            setattr(self, f"drop_{number}", nn.Dropout(0.1 * number))

    def forward(self, x):
        return self.norm(x)

class Rope(bases.Attention):
    def __init__(self, rope, dim, device=None):
        super().__init__(dim, rope=rope, device=device)

class Pooled(nn.Module):
    def __init__(self, width, pool, device=None):
        super().__init__()
        self.width = width
        self.pool = pool

    def forward(self, x):
        return self.pool(x)

class Around(nn.Module):
    def __init__(self, cfg, device):
        super().__init__()
        dd = {"device": device}
        self.parts = nn.ModuleList()
        for number in range(2):
            pool = None
            if number:
                pool = nn.BatchNorm1d(3) if device is None else None
            self.parts += [Pooled(3, pool=pool, **dd)]
        old = Pooled(3, nn.Dropout())
        self.add_module("last", Pooled(3, old.pool, **dd))

class Sized(bases.Attention):
    def __init__(self, dim, cfg, device=None):
        super().__init__(dim, device=device)
        self.size = cfg

    def window(self, target):
        return [r if r <= w else w for r, w in zip(self.size, target)]

class Passing(Open):
    def __init__(self, width, *args, **kwargs):
        super().__init__(*args, **kwargs)

class Chain(nn.Sequential):
    def __init__(self, *args):
        super().__init__(*args)

class Ordered(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("net", net), ("drop", nn.Dropout())]))

    def forward(self, x):
        return self.net(x)

    def again(self):
        return self.__class__(self.net)

def load():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net.eval()
    return net

def modes(net):
    return [int(part.training) for part in net.modules()]

def made(cfg=None, device=None):
    dd = {"device": device}
    found = [Rope(load(), 3), Sized(3, cfg), Attention(3, load()), bases.Attention(3, load(), **dd)]
    found += [Passing(1, load(), nn.Dropout()), Chain(load(), nn.ReLU()), Ordered(load())]
    found += [Layer(cfg or 3, 2, **dd), nn.Sequential(OrderedDict([("drop", nn.Dropout())]))]
    found += [Around(cfg, device), Around(3, 0)]
    held = {"rope": load()}
    found.append(bases.Attention(3, **held))
    found.append(Ordered(load()).again())
    table = {"a": Attention, "b": Sized, "r": Rope, "p": Passing, "c": Chain}
    found += [table["a"](3, load()), table["b"](3, 1), table["r"](load(), 3)]
    return [modes(one) for one in found + [table["p"](1, load()), table["c"](load())]]
"""


def test_what_a_class_keeps_is_asked_of_the_class(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"bases.py": _BASES, "net.py": _OF_BASES})
    assert not [one for one in report.findings if one.code != "look"]
    text = (port / "net.py").read_text()
    for own in (r"Sized\(3, cfg\)", r"Layer\(cfg or 3, 2, \*\*dd\)"):
        assert re.search(rf"{own}\.set_train\(\)", text), own
    for name, starts in {
        "Attention": "self.set_train()",
        "Rope": "compat.start_training(self)",
    }.items():
        body = text.partition(f"class {name}(")[2].partition("\nclass ")[0]
        assert starts in body, name
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
