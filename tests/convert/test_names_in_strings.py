"""Names of torch that are looked up by a text: `getattr(nn, kind)`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both, run_port

from isograd.convert.model import Level
from isograd.convert.names_in_strings import Asked, asked_names

pytest.importorskip("mindspore")

LAYERS = "Conv1d Conv2d GELU GRU LSTM Linear ReLU ReLU6".split()
WORDS = frozenset(("ReLU", "gru", "Linear", "batch"))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("kind", Asked(("Linear", "ReLU"))),
        ("self.config['rnn']", Asked(("Linear", "ReLU"))),
        ("kind.upper()", Asked(("GRU", "Linear", "ReLU"))),
        ("f'Conv{n}d'", Asked(("Conv1d", "Conv2d"), is_whole=True)),
        ("'Conv%dd' % n", Asked(("Conv1d", "Conv2d"), is_whole=True)),
        ("'Conv{}d'.format(n)", Asked(("Conv1d", "Conv2d"), is_whole=True)),
        ("'ReLU' + suffix", Asked(("ReLU", "ReLU6"), is_whole=True)),
        ("'No' + kind", Asked((), is_whole=True)),
        ("f'{kind}'", Asked(("Linear", "ReLU"))),
        ("'%s' % kind", Asked(("Linear", "ReLU"))),
        ("first + second", Asked(("Linear", "ReLU"))),
    ],
)
def test_what_may_be_asked_for(asked: str, expected: Asked) -> None:
    node = ast.parse(asked, mode="eval").body
    assert asked_names(node, LAYERS, WORDS) == expected


def test_a_name_that_is_put_together_on_a_line_before() -> None:
    port, findings = port_of(
        "from torch import nn\n\ndef conv(n, dims):\n    kind = 'Conv{}d'.format(dims)\n"
        "    made = getattr(nn, kind)(n, n, 3)\n    if n > 3:\n"
        "        kind = f'BatchNorm{dims}d'\n        return made, getattr(nn, kind)(n)\n"
        "    return made, None\n"
    )
    assert "Conv2d=" in port
    assert "BatchNorm3d=" in port
    assert not findings


NET = {
    "net.py": """
        import torch.nn.functional as F
        from torch import nn, optim


        def layer(kind, *sizes, **options):
            return getattr(nn, kind)(*sizes, **options)


        class Net(nn.Module):
            def __init__(self, act, dim=2):
                super().__init__()
                self.conv = getattr(nn, f"Conv{dim}d")(3, 4, 3)
                self.act = getattr(nn, act)() if hasattr(nn, act) else None
                self.none = getattr(nn, "No" + act, nn.Identity)()

            def forward(self, x):
                x = self.none(self.act(self.conv(x)))
                return getattr(F, "adaptive_avg_pool%dd" % (x.dim() - 2))(x, 1).flatten(1).max(1)


        def optimizer(net, name="AdamW"):
            return getattr(optim, name)(net.parameters(), lr=1e-3)
    """,
    "run.py": """
        from net import Net

        net = Net("Tanh")
    """,
    "config.yaml": "head: Linear  # or: Bilinear\n",
}


def test_a_port_finds_what_the_project_names(tmp_path: Path) -> None:
    folder, report = converted(tmp_path, NET)
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    said = {finding.line: finding.message for finding in report.findings}
    assert said[7].endswith("the project's texts name: Bilinear, Linear, Tanh")
    assert 13 not in said, "which convolutions there are is known"
    printed = run_port(
        folder,
        """
        import numpy as np
        import mindspore as ms
        from net import Net, layer, optimizer

        net = Net("Tanh")
        out, _ = net(ms.Tensor(np.ones((2, 3, 5, 5), np.float32)))
        print(type(layer("Linear", 2, 3)).__name__, type(net.conv).__name__, out.shape)
        print(type(optimizer(net)).__name__, Net("Softmax").act)
        try:
            layer("Softplus")
        except AttributeError as error:
            print(error)
        """,
    )
    assert printed.splitlines() == [
        "Dense Conv2d (2,)",
        "AdamW None",
        "torch.nn was asked for 'Softplus', which no text of the reference holds: "
        "add it where this look-up is made.",
    ]


def test_what_nothing_names_is_told(tmp_path: Path) -> None:
    _, report = converted(
        tmp_path,
        {"net.py": "from torch import nn\n\n\ndef f(kind):\n    return getattr(nn, kind)\n"},
    )
    assert [finding.line for finding in report.findings if finding.level is Level.FINISH] == [5]
    assert report.findings[0].message.endswith("and no text of the project says for which")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("eval(name)(2, 2)", True, id="a text that is not known"),
        pytest.param("eval('nn.' + name)(2, 2)", True, id="a part of it is"),
        pytest.param("eval('nn.Linear')(2, 2)", True, id="a text that names a layer"),
        pytest.param("eval('2 + 2')", False, id="a text that names nothing of torch's"),
        pytest.param("{'nn.Linear': nn.Linear}[name](2, 2)", False, id="what is advised"),
        pytest.param("name.eval()", False, id="inference"),
    ],
)
def test_a_text_that_is_evaluated_is_told(line: str, told: bool) -> None:
    port, findings = port_of(f"import torch.nn as nn\n\n\ndef f(name):\n    return {line}\n")
    assert [one.code for one in findings] == ["evaluated-text"] * told
    expected = line.replace(": nn.Linear", ": dense_cell")
    expected = expected.replace("name.eval()", "compat.set_mode(name, False)")
    assert port.rstrip().endswith(f"return {expected}")


LOOKED_UP = {
    "losses.py": """
        from torch.nn import CrossEntropyLoss, MSELoss as Squares
        from torch.nn.functional import l1_loss


        def unused():
            return None
    """,
    "kinds.py": """
        import importlib
        import sys
        from torch import float32
        from torch.nn import Conv2d, ReLU
        from torch.optim.lr_scheduler import ExponentialLR, StepLR


        def schedule(name):
            return getattr(sys.modules[__name__], name)


        def layer(name, *sizes, **options):
            return globals()[name](*sizes, **options)


        def found(name):
            return globals().get(name), getattr(importlib.import_module(__name__), name)
    """,
    "run.py": """
        import torch
        import kinds
        import losses
        from torch import nn


        def results():
            one, other = torch.ones(2, 3), torch.zeros(2, 3)
            distances = [getattr(losses, name)()(one, other) for name in ("Squares",)]
            distances += [getattr(losses, name)(one, other) for name in ("l1_loss",)]
            conv = kinds.layer("Conv2d", 3, 4, 3, padding=1, bias=False)
            made, same = kinds.found("ReLU")
            return [[float(distance) for distance in distances],
                    list(conv(torch.ones(1, 3, 5, 5)).shape), made is same,
                    kinds.schedule("StepLR").__name__, kinds.found("float32")[0] == one.dtype]
    """,
}


def test_a_module_that_is_asked_has_what_it_imports_from_torch(tmp_path: Path) -> None:
    folder, report = converted(tmp_path, LOOKED_UP)
    assert not report.findings
    asked = "import json, run; print(json.dumps(run.results()))"
    of_torch, of_port = run_both(tmp_path, folder, asked)
    assert of_port == of_torch


@pytest.mark.parametrize(
    "line",
    [
        "names = [name for name in globals()]",
        "globals().update(kind=1)",
        "globals()['kind'] = 1",
        "import sys\nnames = sys.modules[name]",
    ],
)
def test_what_is_not_asked_for_is_not_bound(line: str) -> None:
    port, _ = port_of(f"from torch.nn import MSELoss\nname = 'sys'\n{line}\nloss = MSELoss()\n")
    assert "MSELoss =" not in port


def test_a_name_without_a_counterpart_that_is_asked_for_is_reported() -> None:
    port, findings = port_of(
        "from torch.onnx import export\n\n\ndef f(name):\n    return globals()[name]\n"
    )
    assert "export = compat.unconverted(" in port
    assert [(finding.line, finding.level) for finding in findings] == [(1, Level.FINISH)]
