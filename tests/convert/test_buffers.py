"""Buffers that are bound to other tensors from outside their class."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

REGISTERING = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))
        self.register_buffer("bias", torch.ones(4), persistent=False)

"""
NETWORK = (
    REGISTERING
    + """
    def halve(self):
        self.scale = self.scale / 2


class Derived(Part):
    def widen(self):
        self.scale = self.scale * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Part(), Derived()])
        self.layer = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.norm.register_buffer("extra", torch.zeros(1))

    def crop(self, n):
        for part in self.parts:
            part.scale = part.scale[:n]
            part.bias = part.bias[:n] * 3


class Plain:
    scale = 3


def halve(m):
    m.scale = m.scale / 2


def told():
    net, plain, one = Net(), Plain(), Part()
    net.crop(2)
    halve(net.parts[0])
    halve(plain)
    plain.scale *= 4
    net.parts[1].widen()
    one.halve()
    one.scale = one.scale - 1
    shared = one.scale
    one.scale *= 8
    setattr(one, "bias", one.bias + 6)
    net.norm.extra = torch.ones(2)
    net.layer.bias = nn.Parameter(torch.ones(3) * 5)
    setattr(net.norm, "bias", nn.Parameter(torch.ones(3) * 6))
    of = [*net.parts, one]
    held = [[part.scale.tolist(), part.bias.tolist()] for part in of]
    held += [net.norm.extra.tolist(), net.layer.bias.tolist(), net.norm.bias.tolist()]
    names = [name for name in net.state_dict() if "norm" not in name]
    return held, plain.scale, shared.tolist(), names
"""
)


def test_buffers_are_set_from_outside(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": NETWORK})
    assert not report.needs_action
    run = "import json, net; print(json.dumps(net.told()))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert [*of_port[:3], sorted(of_port[3])] == [*of_torch[:3], sorted(of_torch[3])]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("m.scale = x", 'compat.set_buffer(m, "scale", x)'),
        ("m.scale -= x", 'compat.set_buffer(m, "scale", compat.augmented("-", m.scale, x))'),
        ("setattr(m, 'scale', x)", "compat.set_buffer(m, 'scale', x)"),
        ("m.scale = 3", "m.scale = 3"),
        ("m.other = x", "m.other = x"),
        ("m().scale = x", 'compat.set_buffer(m(), "scale", x)'),
        ("plain.scale = x", "plain.scale = x"),
        ("self.scale = x", "self.scale = x"),
    ],
)
def test_what_may_be_a_buffer_is_set_by_a_function(line: str, expected: str) -> None:
    code = f"{REGISTERING}\nclass Plain:\n    pass\n\n\nclass Own(nn.Module):\n"
    port, _ = port_of(f"{code}    def run(self, m, x):\n        plain = Plain()\n        {line}\n")
    assert port.rstrip().endswith(expected)


def test_a_buffer_of_another_file_is_known(tmp_path: Path) -> None:
    files = {"part.py": REGISTERING, "use.py": "import torch\ndef f(m, x):\n    m.scale = x\n"}
    port, _ = converted(tmp_path, files)
    assert 'compat.set_buffer(m, "scale", x)' in (port / "use.py").read_text()


SOMETIMES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, learns, bound):
        super().__init__()
        if learns:
            self.pos = nn.Parameter(torch.zeros(2))
        else:
            self.register_buffer("pos", torch.zeros(2))
        if torch.is_tensor(bound):
            self.register_buffer("bound", bound)
        else:
            self.bound = bound
        self.register_buffer("late", torch.ones(2))
        self.register_buffer("count", torch.zeros(1))

    def release(self, value):
        self.late = value

    def learn(self):
        self.count = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.bound += 1
        return (x * self.late + self.pos) * self.bound + self.count


def named(net):
    return [
        sorted(name for name, _ in net.named_parameters()),
        sorted(name for name, _ in net.named_buffers()),
        sorted(net.state_dict()),
    ]


def told():
    learning, fixed = Net(True, 3.0), Net(False, torch.ones(2))
    held = [named(learning), named(fixed)]
    for net in learning, fixed:
        held.append(net(torch.ones(2)).tolist())
    learning.release(nn.Parameter(torch.ones(2) * 5))
    learning.learn()
    fixed.release(torch.ones(2) * 7)
    held += [named(learning), named(fixed)]
    fixed.release(None)
    return held + [named(fixed), learning(torch.ones(2)).tolist()]
"""


def test_what_is_assigned_decides_what_an_attribute_is(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": SOMETIMES})
    assert not report.needs_action
    run = "import json, net; print(json.dumps(net.told()))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == of_torch


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("self.scale = x", 'compat.set_buffer(self, "scale", x)'),
        ("self.scale = nn.Parameter(x)", 'compat.set_buffer(self, "scale", ms.Parameter(x'),
        ("self.scale = self.scale.float()", 'compat.set_buffer(self, "scale", self.scale'),
        ("self.scale = None", "self.scale = None"),
        ("self.scale = self.scale / 2", 'self.register_buffer("scale", self.scale / 2)'),
        ("self.scale = torch.cat([self.scale])", 'self.register_buffer("scale", ops.cat('),
    ],
)
def test_an_own_buffer_is_registered_where_a_tensor_is_sure(line: str, expected: str) -> None:
    port, _ = port_of(f"{REGISTERING}    def change(self, x):\n        {line}\n")
    assert port.rstrip().rpartition("\n")[2].strip().startswith(expected)


def test_an_attribute_is_set_before_the_constructor_of_modules_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    code = """
    from torch import nn

    class Part(nn.Module):
        def __init__(self, bias):
            self.bias = bias
            super().__init__()

        def replace(self, x):
            del self.bias
            self.register_buffer("bias", x)
    """
    port, _ = converted(tmp_path, {"net.py": textwrap.dedent(code)})
    run = "import json, net; print(json.dumps(net.Part(3).bias))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == of_torch == 3


WRITTEN = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, learns):
        super().__init__()
        start = torch.arange(6.0).reshape(2, 3)
        if learns:
            self.codes = nn.Parameter(start)
        else:
            self.register_buffer("codes", start)

    def forward(self, x):
        y = (x * self.codes).sum() + (x * self.codes.data).prod()
        self.codes.data.copy_(x * 2)
        self.codes.data.add_(1)
        self.codes.data *= 3
        self.codes.data[0] = x[1] + self.codes.data[0]
        return y


def told():
    held = []
    for learns in True, False:
        net, x = Net(learns), torch.ones(2, 3, requires_grad=True)
        y = net(x)
        held += [y.item(), net.codes.tolist()]
    net, x = Net(True), torch.ones(2, 3)
    (x * net.codes.data + net.codes).sum().backward()
    return held + [net.codes.grad.tolist()]
"""


def test_data_of_what_is_a_buffer_or_a_parameter_is_written_to(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": WRITTEN})
    assert not report.needs_action
    run = "import json, net; print(json.dumps(net.told()))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == of_torch
