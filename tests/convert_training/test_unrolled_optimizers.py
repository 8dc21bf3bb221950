"""Optimizers in lists and dictionaries, which one compiled step steps together."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

HEAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)
        for number, p in enumerate(self.parameters()):
            p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + number) * 0.5)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


data = torch.cos(torch.arange(48.0) * 1.7).view(3, 4, 4)
net = Net()
"""
LOOP = """
for x in data:
    loss = net(x).pow(2).mean()
    for opt in EACH:
        opt.zero_grad()
    loss.backward()
    for opt in EACH:
        opt.step()
    print(loss.item())
"""
_BODY = "torch.optim.Adam(net.body.parameters(), lr=0.1)"
_HEAD = "torch.optim.SGD(net.head.parameters(), lr=0.5)"
#: What makes the optimizers, and what the loops go through.
UNROLLED = {
    "a list": (f"opts = [{_BODY}, {_HEAD}]", "opts"),
    "names in a tuple": (f"a = {_BODY}\nb = {_HEAD}\nopts = (a, b)\nprint(len(opts))", "opts"),
    "a dictionary": (f"opts = {{'body': {_BODY}, 'the head': {_HEAD}}}", "opts.values()"),
    "one": ("opts = [torch.optim.SGD(net.parameters(), lr=0.5)]", "opts"),
}
#: What may be another list where the loops run.
KEPT = {
    "appended to": (f"opts = [{_BODY}]\nopts.append({_HEAD})", "opts"),
    "an element is another": (f"opts = [{_BODY}, {_HEAD}]\nopts[0] = opts[1]", "opts"),
    "of two statements": (f"opts = [{_BODY}]\nif len(data):\n    opts = [{_HEAD}]", "opts"),
    "given to a function": (f"opts = [{_BODY}]\nsorted(opts)\nlist.append(opts, {_HEAD})", "opts"),
    "of a loop": (f"opts = [one for one in ({_BODY}, {_HEAD})]", "opts"),
}
OF_AN_OBJECT = """
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizers = [
            torch.optim.Adam(net.body.parameters(), lr=0.1),
            torch.optim.SGD(net.head.parameters(), lr=0.5),
        ]

    def step(self, x):
        loss = self.net(x).pow(2).mean()
        for opt in self.optimizers:
            opt.zero_grad(set_to_none=True)
        loss.backward()
        for opt in self.optimizers:
            opt.step()
        return loss


trainer = Trainer(net)
for x in data:
    print(trainer.step(x).item())
"""
BY_PLACE = """
opts = [torch.optim.Adam(net.body.parameters(), 0.1), torch.optim.SGD(net.head.parameters(), 0.5)]
for x in data:
    opts[0].zero_grad()
    opts[1].zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opts[0].step()
    opts[1].step()
    print(loss.item())
"""


@pytest.mark.parametrize("name", UNROLLED)
def test_optimizers_that_are_written_out_are_stepped_in_one_step(name: str, tmp_path: Path) -> None:
    made, each = UNROLLED[name]
    port = assert_follows(f"{HEAD}{made}\n{LOOP.replace('EACH', each)}", tmp_path)
    assert port.text.count("@ms.jit") == 1


def test_those_of_an_object_are_too(tmp_path: Path) -> None:
    assert "@ms.jit" in assert_follows(HEAD + OF_AN_OBJECT, tmp_path).text


def test_an_element_of_a_list_has_a_name_in_the_step(tmp_path: Path) -> None:
    assert (
        "def make_training_step(net, opts_0, opts_1):"
        in assert_follows(HEAD + BY_PLACE, tmp_path).text
    )


@pytest.mark.parametrize("name", KEPT)
def test_a_list_that_may_be_another_keeps_its_loops(name: str, tmp_path: Path) -> None:
    made, each = KEPT[name]
    port = convert(f"{HEAD}{made}\n{LOOP.replace('EACH', each)}", tmp_path)
    assert "@ms.jit" not in port.text
    assert [f.code for f in port.report.findings] == ["eager-training"]
