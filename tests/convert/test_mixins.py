"""Classes that are no modules themselves, and whose methods are those of modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_MIXINS = """
import torch


class FeatureMixin:
    def hook_all(self):
        self.feats = {}
        for name, child in self.named_children():
            child.register_forward_hook(lambda m, i, o, name=name: self.feats.__setitem__(name, o))

    def freeze(self):
        for p in self.parameters():
            p.requires_grad = False
        self.eval()
        return self

    def init(self):
        def one(m):
            if isinstance(m, torch.nn.Linear):
                torch.nn.init.constant_(m.weight, 0.25)
                torch.nn.init.zeros_(m.bias)
        self.apply(one)

    def count(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


class Inner(FeatureMixin):
    def both(self):
        self.train(False)
        self.init()
        self.register_buffer("k", torch.ones(2))
        return sorted(self.state_dict()), self.training, sum(1 for _ in self.modules())

    def score(self, x):
        self.eval()
        with torch.no_grad():
            return self(x).sum().item()
"""
_NET = """
from torch import nn


class Net(Inner, nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.d = nn.Dropout(0.5)

    def forward(self, x):
        return self.d(self.b(self.a(x)))
"""
_RUN = """
import json
from net import Net

net, x = Net(), TENSOR([[1.0, 1.0]])
said = [net.count(), net.both(), net.score(x)]
net.hook_all()
net(x)
net.freeze()
print(json.dumps([*said, sorted(net.feats), net.training, net.count()]))
"""


@pytest.mark.parametrize("is_apart", [True, False])
def test_methods_of_modules_in_a_mixin(tmp_path: Path, is_apart: bool) -> None:
    head, *rest = _NET.split("\n", 2)[1:]
    if is_apart:
        net = "\n".join((head, "from mixins import Inner", *rest))
        files = {"mixins.py": _MIXINS, "net.py": net}
    else:
        files = {"net.py": f"{_MIXINS}\n{_NET}"}
    port, report = converted(tmp_path, files)
    assert not report.findings
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected


def test_a_name_that_the_derived_class_gives_another_meaning() -> None:
    code = """
    from torch import nn

    class Switched:
        def off(self):
            self.eval()

    class Net(Switched, nn.Module):
        def forward(self, x):
            return x

    class Judge(Switched):
        def eval(self):
            return 1
    """
    assert "self.eval()" in port_of(code)[0]
