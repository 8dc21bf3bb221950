"""Layers become MindSpore's own, by MindSpore's names, whatever else the project does with them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_original, run_port
from tests.warm_python import run_python

HEAD = "import torch\nfrom torch import nn\nfrom functools import partial\n\n\n"
_CLASS = "class Net(nn.Module):\n    def __init__(self, norm=None):\n        super().__init__()\n"


def _method(*lines: str) -> str:
    return HEAD + _CLASS + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            _method("self.bn = nn.BatchNorm2d(3, momentum=0.01)", "self.bn.weight.data.fill_(0)"),
            ("nn.BatchNorm2d(3, momentum=1 - 0.01)", "ops.assign(self.bn.gamma,"),
            id="a layer that the class makes",
        ),
        pytest.param(
            _method(
                "self.plain = nn.BatchNorm2d(3, affine=False)",
                "self.own = nn.BatchNorm1d(3, track_running_stats=False)",
                "self.group = nn.GroupNorm(1, 3, affine=False)",
            ),
            (
                "batch_norm2d_cell(3, affine=False)",
                "cell.affine = affine",
                "compat.BatchNorm1d(3, 1e-05, 0.1, True, False)",
                "nn.GroupNorm(1, 3, affine=False)",
            ),
            id="MindSpore's norms always hold parameters and statistics",
        ),
        pytest.param(
            _method(
                "for m in self.modules():",
                "    if isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):",
                "        nn.init.ones_(m.weight)",
            ),
            (
                "for _, m in self.cells_and_names():",
                "ops.assign(m.gamma, initializer.initializer('ones', m.gamma.shape, ",
            ),
            id="an isinstance says which layer it is",
        ),
        pytest.param(
            _method(
                "if norm is None:",
                "    norm = nn.BatchNorm2d",
                "self.bn = norm(4)",
                "self.bn.bias.data.zero_()",
            ),
            ("norm = batch_norm2d_cell", "ops.assign(self.bn.beta,"),
            id="the class is a parameter's default",
        ),
        pytest.param(
            HEAD + "def f(m, n):\n    n.norm = nn.LayerNorm(3)\n    return m.weight\n",
            ('compat.layer_attribute(m, "weight")',),
            id="nothing shows which layer it is",
        ),
        pytest.param(
            HEAD + "def f(m):\n    return nn.Linear(2, 3), m.weight\n",
            ("return nn.Dense(2, 3), m.weight",),
            id="no layer of the project has another name for it",
        ),
        pytest.param(
            _method("self.a = nn.MaxPool2d(2)", "self.a.stride = 1", "self.b = nn.Flatten()"),
            ("self.a = compat.MaxPool2d(2)", "self.a.stride = 1", "self.b = nn.Flatten(1, -1)"),
            id="a setting is set, which MindSpore's layer reads when it is made",
        ),
        pytest.param(
            _method("self.a = nn.Dropout(0.1)", "self.a.p = 0.3"),
            ("self.a = nn.Dropout(p=0.1)", 'compat.set_dropout_setting(self.a, "p", 0.3)'),
            id="a setting is set that a function of the runtime sets",
        ),
        pytest.param(
            _method("self.a = nn.Linear(2, 3, bias=False)", "self.a.bias = self.b"),
            (
                "self.a = nn.Dense(2, 3, has_bias=False)",
                'compat.set_bias(self.a, "bias", self.b)',
            ),
            id="a bias is set of a layer without one",
        ),
        pytest.param(
            _method("self.a = nn.BatchNorm2d(3)", "self.a.momentum = None"),
            ("self.a = compat.BatchNorm2d(3)", "self.a.momentum = None"),
            id="a setting is set to what no layer of MindSpore has",
        ),
        pytest.param(
            _method("self.a = nn.GELU()", 'self.a.approximate = "tanh"'),
            ("self.a = nn.GELU(approximate=False)", 'self.a.approximate = "tanh"'),
            id="a setting is set that MindSpore's layer reads at each call, too",
        ),
        pytest.param(
            HEAD
            + "def f(m: nn.Module, s):\n    m.eps = s\n    return nn.BatchNorm2d(3), nn.ReLU()\n",
            ('compat.set_norm_setting(m, "eps", s)', "nn.BatchNorm2d(3).set_train(), nn.ReLU()"),
            id="a setting of what may be such a layer",
        ),
        pytest.param(
            HEAD
            + "def f(net):\n    for m in net.modules():\n"
            + "        if isinstance(m, nn.modules.batchnorm._BatchNorm):\n"
            + "            setattr(m, 'eps', 1.0)\n    return nn.BatchNorm2d(3)\n",
            ('compat.set_norm_setting(m, "eps", 1.0)', "nn.BatchNorm2d(3)"),
            id="a setting of a class from which layers derive",
        ),
        pytest.param(
            _method("self.p = 0.3", "self.a = nn.Dropout(self.p)"),
            ("self.a = nn.Dropout(p=self.p)",),
            id="an attribute of its own is no setting of a layer",
        ),
        pytest.param(
            HEAD + "layer = partial(nn.Conv2d, bias=False, groups=2)\n",
            ("layer = partial(conv2d_cell, bias=False, groups=2)",),
            id="a partial takes torch's arguments",
        ),
        pytest.param(
            HEAD + "layer = partial(nn.BatchNorm2d, track_running_stats=True)\n",
            ("layer = partial(batch_norm2d_cell, track_running_stats=True)",),
            id="an argument that MindSpore's has not, with what MindSpore's does",
        ),
        pytest.param(
            HEAD + "layer = partial(nn.BatchNorm2d, track_running_stats=False)\nb = nn.Conv2d\n",
            ("layer = partial(compat.BatchNorm2d, track_running_stats=False)", "b = conv2d_cell"),
            id="an argument that MindSpore's has not, given by a partial",
        ),
        pytest.param(
            _method(
                "layer = nn.Identity if norm else nn.Conv2d", "layer(2, 2, 1, padding_mode=norm)"
            ),
            ("layer = identity_cell if norm else compat.Conv2d",),
            id="an argument that MindSpore's has not, given to one of two layers",
        ),
        pytest.param(
            HEAD + "def f(m, n=nn.Embedding):\n    return m(3, padding_idx=0), nn.LayerNorm\n",
            ("n=compat.Embedding", "layer_norm_cell"),
            id="an argument that MindSpore's has not, given to what is not known",
        ),
        pytest.param(
            HEAD + "def f(c: int, d: int = 1):\n    return nn.Conv2d(c, c, 3, padding=d)\n",
            ("nn.Conv2d(c, c, 3, pad_mode='pad', padding=d, has_bias=True)",),
            id="padding that is a whole number by its annotation",
        ),
        pytest.param(
            HEAD + "def f(c, d):\n    return nn.Conv2d(c, c, 3, padding=d)\n",
            ("conv2d_cell(c, c, 3, padding=d)", "def conv2d_cell("),
            id="padding that may be a pair",
        ),
        pytest.param(
            _method("self.a = nn.ModuleList()", "self.a.append(nn.Linear(2, 3))"),
            ("self.a.append(nn.Dense(2, 3))\n        self.update_parameters_name()",),
            id="parameters of late children are named by their place",
        ),
        pytest.param(
            _method("self.a = nn.ModuleList([nn.ModuleDict({'b': nn.Linear(2, 3)})])"),
            ("nn.CellList([compat.DictOfCells({'b': nn.Dense(2, 3)})])",),
            id="a list of dictionaries of layers",
        ),
        pytest.param(
            HEAD
            + _CLASS.replace("norm=None", "n: int, device=None, dtype=None")
            + "        dd = {'device': device, 'dtype': dtype}\n"
            "        self.a = nn.Parameter(torch.zeros(1, n, **dd))\n"
            "        self.b = nn.Parameter(torch.empty(n, **dd))\n"
            "        nn.init.ones_(self.b)\n",
            ("ops.zeros((1, n), dtype=dtype)", "ops.zeros(n, dtype=dtype)", "ops.assign(self.b, "),
            id="what a dictionary passes is known where it is written out",
        ),
        pytest.param(
            HEAD + "class Own(nn.BatchNorm2d):\n    def forward(self, x):\n"
            "        return super().forward(x) * self.weight\n\n\n"
            "def f(m: nn.BatchNorm2d):\n    m.bias = nn.Parameter(m.weight)\n"
            "    return m.running_var\n",
            (
                "super().construct(x) * self.weight",
                'setattr(m, compat.native_name(m, "bias"), ms.Parameter(m.gamma',
                "return m.moving_variance",
            ),
            id="classes that derive from the runtime's layer answer to MindSpore's names",
        ),
        pytest.param(
            HEAD + "class Pair(nn.Sequential):\n    def __init__(self, c: int):\n"
            "        super().__init__()\n        self.add_module('c', nn.Conv2d(3, c, 1))\n"
            "        self.add_module('bn', nn.BatchNorm2d(c))\n"
            "        nn.init.zeros_(self.bn.weight)\n\n"
            "    def fuse(self):\n        c, bn = self._modules.values()\n"
            "        return c.groups, bn.weight\n",
            ("ops.assign(self.bn.gamma, ", "return c.group, bn.gamma"),
            id="children that the constructor adds by their names",
        ),
        pytest.param(
            _method(
                "self.n = nn.Linear(c, c)",
                "self.n = nn.BatchNorm2d(c)",
                "self.n.weight.data = w",
                "self.n.bias.data.fill_(1)",
                "return self.n.weight",
            ),
            (
                "self.n.gamma.set_data(w.copy(), slice_shape=True)",
                "ops.assign(self.n.beta, ",
                "return self.n.gamma",
            ),
            id="a statement before binds it, as others bind otherwise",
        ),
        pytest.param(
            _method(
                "self.n: nn.Module = nn.LayerNorm(3) if norm else nn.Identity()",
                "self.n.weight.data.fill_(0)",
            ),
            ("ops.assign(self.n.gamma,",),
            id="an Identity has no parameters in either",
        ),
        pytest.param(
            HEAD + "def f(x, a: int):\n    b, n = x.shape[:2]\n    torch.arange(-n, a + 1, a)\n"
            "    c = torch.arange(n, dtype=torch.float32)\n"
            "    return c, torch.arange(b, n, device=x.device)\n",
            (
                "ops.arange(-n, a + 1, a)",
                "c = ops.arange(n, dtype=ms.float32)",
                "return c, ops.arange(b, n)",
            ),
            id="a range of integers",
        ),
        pytest.param(
            HEAD + "class Norm(nn.LayerNorm):\n    def forward(self, x):\n"
            "        return super().forward(x) * self.weight + self.eps\n",
            (
                "class Norm(compat.LayerNormCell):",
                "super().construct(x) * self.gamma + self.epsilon",
            ),
            id="a class that derives from a norm has MindSpore's names",
        ),
        pytest.param(
            HEAD + "def f(block, x):\n    a = nn.Linear(2, 3)\n"
            "    return a(block(x, is_causal=True, indices=None))\n",
            ("a = nn.Dense(2, 3)",),
            id="a name of arguments that only the runtime's layers have",
        ),
        pytest.param(
            HEAD + "def f(m: nn.Module):\n    a = nn.Linear(2, 3)\n"
            "    return a if m._parameters else [n for n in m._parameters.keys()]\n",
            (
                "nn.Dense(2, 3)",
                'a if dict(compat.named_parameters(m, "", False)) else '
                '[n for n in dict(compat.named_parameters(m, "", False)).keys()]',
            ),
            id="the dictionary of a module's parameters is only read",
        ),
        pytest.param(
            HEAD + "a = nn.BatchNorm2d(3, track_running_stats=False)\n"
            "b = nn.BatchNorm1d(3, momentum=None)\nc = nn.BatchNorm2d(3, 1e-5, 0.1, True, False)\n",
            (
                "a = compat.BatchNorm2d(3, 1e-05, 0.1, True, False)",
                "b = compat.BatchNorm1d(3, 1e-05, None, True, True)",
                "c = compat.BatchNorm2d(3, 1e-5, 0.1, True, False)",
            ),
            id="a norm without running statistics, or with their plain mean, is the runtime's",
        ),
        pytest.param(
            HEAD + "def f(p):\n    return nn.Dropout(p, inplace=True)\n",
            ("return nn.Dropout(p=p)",),
            id="the first argument of a layer is no input that it writes",
        ),
        pytest.param(
            HEAD + "class Seq(nn.Sequential):\n    def __init__(self):\n"
            "        super().__init__()\n        self.fc = nn.Linear(2, 3)\n",
            ("class Seq(compat.SequentialOfAttributes):",),
            id="a Sequential that gets children as attributes",
        ),
        pytest.param(
            HEAD + "class Seq(nn.Sequential):\n    def __init__(self, n: int):\n"
            "        super().__init__(nn.Linear(2, 3))\n        self.n = n\n",
            ("class Seq(nn.SequentialCell):",),
            id="a Sequential that keeps a number",
        ),
        pytest.param(
            HEAD + "class Net(nn.Module):\n    def train(self, mode=True):\n"
            "        return super().train(mode)\n",
            ("class Net(compat.ModeCell):", "def train(self, mode=True):"),
            id="a mode of the class's own is set from above, too",
        ),
    ],
)
def test_a_layer_is_mindspores_own(source: str, expected: tuple[str, ...]) -> None:
    port, findings = port_of(source)
    assert not findings
    for text in expected:
        assert text in port


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            "def make():\n    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))\n"
            "    return net\n",
            "nn.BatchNorm1d(3)).set_train()",
            id="a Sequential that a function returns",
        ),
        pytest.param(
            "def part():\n    return nn.Sequential(nn.Dropout())\n\n\n"
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.part = part()\n\n\nnet = Net()\n",
            "nn.Dropout(p=0.5))\n\n\nclass Net(nn.Cell)",
            id="a part of a module gets the mode from it",
        ),
        pytest.param(
            "def f(x):\n    drop = nn.Dropout(0.5)\n    return drop(x)\n",
            "drop = nn.Dropout(p=0.5).set_train()",
            id="a layer that is called where it is made",
        ),
        pytest.param(
            "def f(x):\n    return nn.Sequential(nn.Linear(2, 3))(x)\n",
            "nn.SequentialCell(nn.Dense(2, 3))(x)",
            id="nothing of the project has modes",
        ),
    ],
)
def test_a_network_starts_in_training(source: str, expected: str) -> None:
    port, _ = port_of(HEAD + source)
    assert expected in port


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            "def f(n, dtype=None):\n    dd = {'dtype': dtype}\n    dd.update(device='cpu')\n"
            "    return torch.zeros(n, **dd)\n",
            "compat.zeros(n, **dd)",
            id="a dictionary that is changed",
        ),
        pytest.param(
            "def f(n, dtype=None):\n    dd = {'dtype': dtype}\n    dtype = torch.float64\n"
            "    return torch.zeros(n, **dd)\n",
            "compat.zeros(n, **dd)",
            id="a name in the dictionary is bound again",
        ),
        pytest.param(
            "class Net(nn.Module):\n"
            "    def reset(self):\n"
            "        self.n = nn.Linear(2, 2)\n"
            "\n"
            "    def forward(self):\n"
            "        self.n = nn.BatchNorm2d(2)\n"
            "        self.n.bias.data = self.reset()\n"
            "        return self.n.weight\n",
            'compat.layer_attribute(self.n, "weight")',
            id="a call in what is written may bind it again",
        ),
        pytest.param(
            "class Net(nn.Module):\n"
            "    def reset(self):\n"
            "        self.n = nn.Linear(2, 2)\n"
            "\n"
            "    def forward(self):\n"
            "        self.n = nn.BatchNorm2d(2)\n"
            "        return lambda: self.n.weight\n",
            'compat.layer_attribute(self.n, "weight")',
            id="what is read later may be bound again",
        ),
        pytest.param(
            "class Net(nn.Module):\n"
            "    def reset(self):\n"
            "        self.n = nn.Linear(2, 2)\n"
            "\n"
            "    def forward(self):\n"
            "        self.n = nn.BatchNorm2d(2)\n"
            "        self.reset()\n"
            "        return self.n.weight\n",
            'compat.layer_attribute(self.n, "weight")',
            id="a call between may bind it again",
        ),
        pytest.param(
            "class Pair(nn.Sequential):\n    def __init__(self):\n        super().__init__()\n"
            "        self.add_module('c', nn.Conv2d(3, 3, 1))\n"
            "        self.act = nn.ReLU()\n        self.add_module('bn', nn.BatchNorm2d(3))\n\n"
            "    def fuse(self):\n        c, bn = self._modules.values()\n"
            "        return bn.weight\n",
            'compat.layer_attribute(bn, "weight")',
            id="children by attributes, whose order is not followed",
        ),
        pytest.param(
            "def f(n):\n    return torch.arange(n)\n",
            "compat.arange(n, None, 1, None)",
            id="a range to what may be a fraction",
        ),
    ],
)
def test_the_runtime_stays_where_nothing_shows_that_mindspores_own_fits(
    source: str, expected: str
) -> None:
    port, _ = port_of(HEAD + source)
    assert expected.replace('"', "'") in port.replace('"', "'")


@pytest.mark.parametrize("comment", ["", "# see .weight and norm_layer = nn.BatchNorm2d\n"])
def test_comments_change_nothing(comment: str) -> None:
    port, _ = port_of(
        HEAD + comment + "def block(c: int):\n    return nn.Conv2d(c, c, 3, padding=1)\n"
    )
    assert port.endswith("return nn.Conv2d(c, c, 3, pad_mode='pad', padding=1, has_bias=True)\n")


#: Calls of factories with torch's class, its arguments and the shape of an input.
_FACTORIES = [
    ("conv1d_cell", "Conv1d", (3, 4, 3), {"padding": 1, "stride": 2}, (2, 3, 9)),
    ("conv1d_cell", "Conv1d", (4, 4, 3), {"padding": "same", "groups": 2}, (2, 4, 9)),
    ("conv2d_cell", "Conv2d", (3, 4, (3, 5)), {"padding": (1, 2)}, (2, 3, 8, 9)),
    ("conv2d_cell", "Conv2d", (3, 4, [3, 3]), {"stride": [2, 1], "bias": False}, (2, 3, 8, 9)),
    ("conv2d_cell", "Conv2d", (4, 4, 4), {"padding": "same", "groups": 2}, (2, 4, 8, 9)),
    ("conv3d_cell", "Conv3d", (2, 3, 3), {"padding": (1, 0, 1)}, (2, 2, 5, 6, 7)),
    ("batch_norm1d_cell", "BatchNorm1d", (4, 1e-3, 0.3), {}, (6, 4)),
    ("batch_norm2d_cell", "BatchNorm2d", (3,), {"momentum": 0.3}, (2, 3, 5, 6)),
    ("batch_norm2d_cell", "BatchNorm2d", (3,), {"affine": False}, (2, 3, 5, 6)),
    ("batch_norm2d_cell", "BatchNorm2d", (3, 1e-5, 0.1, True, True), {}, (2, 3, 5, 6)),
    ("conv2d_cell", "Conv2d", (2, 3, 3), {"padding_mode": "zeros"}, (2, 2, 8, 9)),
    ("group_norm_cell", "GroupNorm", (2, 4), {"affine": False}, (2, 4, 5)),
    ("layer_norm_cell", "LayerNorm", (6,), {"eps": 1e-3}, (2, 3, 6)),
    ("layer_norm_cell", "LayerNorm", ((6,),), {}, (2, 3, 6)),
    ("layer_norm_cell", "LayerNorm", ((3, 6),), {"eps": 1e-3}, (2, 3, 6)),
    ("layer_norm_cell", "LayerNorm", ([4, 3, 6],), {}, (2, 4, 3, 6)),
    ("group_norm_cell", "GroupNorm", (2, 4), {"eps": 1e-3}, (2, 4, 5)),
    ("dense_cell", "Linear", (6, 4), {"bias": False}, (2, 6)),
    ("max_pool2d_cell", "MaxPool2d", (3,), {"padding": 1, "ceil_mode": True}, (2, 3, 8, 9)),
    ("max_pool2d_cell", "MaxPool2d", ((3, 2), (2, 1)), {"dilation": 2}, (2, 3, 8, 9)),
    ("avg_pool2d_cell", "AvgPool2d", (3, 2, 1), {"count_include_pad": False}, (2, 3, 8, 9)),
    ("avg_pool2d_cell", "AvgPool2d", (2,), {"ceil_mode": True}, (2, 3, 7, 9)),
    ("gelu_cell", "GELU", ("tanh",), {}, (2, 5)),
    ("gelu_cell", "GELU", (), {}, (2, 5)),
    ("relu6_cell", "ReLU6", (True,), {}, (2, 5)),
    ("hswish_cell", "Hardswish", (), {"inplace": True}, (2, 5)),
    ("identity_cell", "Identity", (3,), {"any": 4}, (2, 5)),
    ("prelu_cell", "PReLU", (), {"num_parameters": 3, "init": 0.1}, (2, 3, 5)),
    ("glu_cell", "GLU", (), {"dim": 1}, (2, 4)),
    ("celu_cell", "CELU", (2,), {"inplace": True}, (2, 5)),
    ("threshold_cell", "Threshold", (0.1, 0.5), {"inplace": True}, (2, 5)),
]
_BOTH = """
import json, sys
import numpy as np, torch, mindspore as ms
from isograd.runtime import cells, module_functions

def same(name, kind, args, kwargs, shape):
    made, own = getattr(torch.nn, kind)(*args, **kwargs), getattr(cells, name)(*args, **kwargs)
    names = {"weight": "w" if hasattr(own, "w") else "gamma", "bias": "beta"}
    learned = [key for key, _ in module_functions.named_parameters(own)]
    assert sorted(learned) == sorted(key for key, _ in made.named_parameters()), learned
    for key, value in made.named_parameters():
        other = getattr(own, key if hasattr(own, key) else names[key])
        other.set_data(ms.Tensor(value.detach().numpy().reshape(other.shape)))
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    given = torch.tensor(x, requires_grad=True)
    found = made.train()(given * 1)
    found.square().sum().backward()
    own.set_train()
    run = ms.value_and_grad(lambda x: ((y := own(x)) ** 2).sum(), 0)
    error = abs(own(ms.Tensor(x)).asnumpy() - found.detach().numpy()).max()
    return float(error), float(abs(run(ms.Tensor(x))[1].asnumpy() - given.grad.numpy()).max())

rows = eval(sys.argv[1])
print(json.dumps([same(*row) for row in rows]))
"""


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        pytest.param("m.eps = 1e-3", True, id="an attribute"),
        pytest.param("setattr(m, 'eps', 1e-3)", True, id="setattr"),
        pytest.param("m.eps *= 2", True, id="it is changed"),
        pytest.param("m.width = 3", False, id="no setting of a layer"),
        pytest.param("m.eps", False, id="it is read"),
    ],
)
def test_a_setting_of_what_may_be_a_layer_is_told(statement: str, told: bool) -> None:
    port, findings = port_of(f"{HEAD}def f(m):\n    {statement}\n    return nn.BatchNorm2d(3)\n")
    assert [f.code for f in findings] == ["layer-setting"] * told
    assert "nn.BatchNorm2d(3)" in port


def test_a_setting_that_is_set_beside_others_is_left_to_a_person() -> None:
    port, findings = port_of(_method("self.a = nn.BatchNorm2d(3)", "self.a.eps, n = 0.5, 2"))
    assert [f.code for f in findings] == ["layer-setting"]
    assert "# isograd: a BatchNorm2d of MindSpore does not see eps that is set here" in port


ASKED = """
import types
from torch import nn

def make(layer, width):
    if isinstance(layer, types.FunctionType) or not issubclass(layer, nn.BatchNorm2d):
        return nn.Identity()
    return layer(width, eps=0.5)

class Net(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.norm = make(norm, 3)
        self.told = [norm.__name__, isinstance(norm, type), isinstance(self.norm, norm)]
        self.told += [self.norm.eps, isinstance(nn.ReLU(), norm)]
"""


def test_a_layer_that_is_asked_whether_it_is_a_class_is_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": ASKED})
    assert not report.needs_action
    code = "import net; print(net.Net().told)"
    assert run_port(port, code) == run_original(tmp_path, code)


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        pytest.param("look(layer)", True, id="it is given what is not known"),
        pytest.param("look(nn.GELU)", True, id="it is given a layer's class"),
        pytest.param("look(run)", False, id="it is given a function of the project's"),
        pytest.param("other = look", True, id="it has another name"),
    ],
)
def test_a_factory_is_a_class_where_classes_are_asked_for(call: str, asked: bool) -> None:
    code = f"""{HEAD}
def look(x):
    return isinstance(x, type)

def run(layer, norm=nn.BatchNorm2d):
    {call}
"""
    port, _ = port_of(code)
    assert ("class BatchNorm2d(nn.BatchNorm2d):" in port) is asked


@pytest.mark.parametrize(
    ("question", "is_of_runtime"),
    [
        pytest.param("isinstance(norm, nn.BatchNorm2d)", False, id="a class by its name"),
        pytest.param("isinstance(norm, (int, nn.Conv2d))", False, id="classes by their names"),
        pytest.param("isinstance(norm, Own)", False, id="a class of the file"),
        pytest.param("isinstance(norm(3), norm)", True, id="a class that a parameter brings"),
        pytest.param("isinstance(norm(3), KINDS)", True, id="classes that a variable holds"),
        pytest.param("isinstance(norm(3), Own.kind)", True, id="an attribute of a class"),
        pytest.param("isinstance(norm(3), layer.kind)", True, id="an attribute of a parameter"),
    ],
)
def test_instances_of_a_variable_class_are_asked_for_by_the_runtime(
    question: str, is_of_runtime: bool
) -> None:
    code = f"""{HEAD}
KINDS = (nn.Conv2d, nn.Linear)

class Own:
    kind = int

def look(x):
    return isinstance(x, type)

def run(layer, norm=nn.BatchNorm2d):
    look(norm)
    return {question}
"""
    port, _ = port_of(code)
    asked = question.replace("isinstance", "compat.is_instance").replace("nn.Linear", "nn.Dense")
    assert (asked in port) is is_of_runtime
    assert "class BatchNorm2d(nn.BatchNorm2d):" in port
    assert ("    _makes = nn.BatchNorm2d  #" in port) is is_of_runtime


def test_a_class_of_a_port_has_torchs_name_where_the_file_uses_it_otherwise(tmp_path: Path) -> None:
    code = """import torch
from torch import nn

def BatchNorm2d(): ...

def make(layer):
    return [layer.__name__, isinstance(layer, type), layer(3).eps]

told = make(nn.BatchNorm2d)
"""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": code})
    assert not report.needs_action
    assert (
        run_port(port, "import net; print(net.told)").split()
        == "['BatchNorm2d', True, 1e-05]".split()
    )


def test_factories_make_what_torchs_classes_make() -> None:
    """Output and gradient of the input in training, from the same weights; what learns."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    frameworks = ["torch", "mindspore"]
    done = run_python(_BOTH, repr(_FACTORIES), cwd=Path.cwd(), imported=frameworks)
    assert done.returncode == 0, done.stderr[-3000:]
    errors = json.loads(done.stdout.splitlines()[-1])
    wrong = [(row, e) for row, e in zip(_FACTORIES, errors, strict=True) if max(e) > 1e-4]
    assert not wrong


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("with torch.autocast('cuda'):\n    y = x * 2", "mixed-precision"),
        ("with torch.autocast('cuda', enabled=False):\n    y = x * 2", ""),
        ("torch.save(x, 'best.pth')", "checkpoint-name"),
        ("torch.save(x, folder + f'/{step}.pt')", "checkpoint-name"),
        ("torch.save(x, 'best.ckpt')", ""),
    ],
)
def test_what_a_port_does_otherwise_is_told_at_its_line(line: str, code: str) -> None:
    _, findings = port_of("import torch\nx, folder, step = torch.ones(2), '', 0\n" + line + "\n")
    assert [finding.code for finding in findings] == [code] * bool(code)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("(x * 2).to(x.device)", "(x * 2)"),
        ("torch.arange(4).to(x.device)", "ops.arange(4)"),
        ("x.to('cpu', non_blocking=True)", "x"),
        ("x.to(x.device, torch.float16)", "x.astype(ms.float16)"),
        ("x.to(x.device, torch.int64)", "ops.stop_gradient(x).astype(ms.int64)"),
        ("x.to(f'cuda:{k}', torch.float16, True)", "x.astype(ms.float16)"),
        ("x.to(k, torch.float16, False, True)", "compat.to(x, k, ms.float16, False, True)"),
        ("x.to('cpu', copy=True)", "compat.to(x, 'cpu', copy=True)"),
        ("x.to(copy=True)", "compat.to(x, copy=True)"),
        ("x.to(k)", "compat.to(x, k)"),
        ("x.to(x)", "compat.to(x, x)"),
        ("x.to(x.device, k)", "compat.to(x, x.device, k)"),
    ],
)
def test_a_tensor_is_not_moved_between_devices(written: str, expected: str) -> None:
    port, findings = port_of(
        f"import torch\n\ndef f(x: torch.Tensor, k=None):\n    return {written}\n"
    )
    assert port.rstrip().endswith(f"return {expected}"), port
    assert not findings


_REFUSED = [
    ("conv1d_cell", (2, 2, 1), {"padding_mode": "reflect"}, "pads with zeros"),
    ("conv2d_cell", (2, 2, 1, 1, 0, 1, 1, True, "reflect"), {}, "pads with zeros"),
    ("conv3d_cell", (2, 2, 1), {"padding_mode": "circular"}, "pads with zeros"),
    ("batch_norm1d_cell", (2,), {"track_running_stats": False}, "has running statistics"),
    ("batch_norm2d_cell", (2,), {"track_running_stats": False}, "has running statistics"),
    ("layer_norm_cell", (2,), {"elementwise_affine": False}, "has a weight and a bias"),
    ("layer_norm_cell", (2, 1e-5, True, False), {}, "has a weight and a bias"),
    ("embedding_cell", (2, 2, 0), {}, "teaches every row alike"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "told"), _REFUSED)
def test_factories_refuse_what_mindspores_layers_cannot(
    name: str, args: tuple[object, ...], kwargs: dict[str, object], told: str
) -> None:
    pytest.importorskip("mindspore")
    cells = importlib.import_module("isograd.runtime.cells")
    with pytest.raises(NotImplementedError, match=told):
        getattr(cells, name)(*args, **kwargs)
