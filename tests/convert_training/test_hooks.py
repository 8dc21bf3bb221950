"""Hooks of gradients, on layers of which the file says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows

_SCRIPT = """
import torch
from torch import nn


class GradCAM:
    def __init__(self, layer):
        self.layer = layer
        self.handle = self.layer.register_full_backward_hook(self._save)

    def _save(self, module, grad_input, grad_output):
        self.gradient = grad_output[0].detach()


def watch(net, show):
    first = net[0]
    first.register_full_backward_hook(show(1))
    dict(net.named_modules())["2"].register_full_backward_hook(show(2))
    for _, module in net.named_children():
        module.register_full_backward_hook(show(3), prepend=True)


def show(number):
    return lambda module, inputs, outputs: print(number + round(outputs[0].sum().item(), 3))


class Other:
    def register_full_backward_hook(self, hook, prepend=False):
        print(hook)


def tell(anything):
    anything.register_full_backward_hook(7)


net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
for number, p in enumerate(net.parameters()):
    p.data = torch.full_like(p, 0.1 * (number + 1))
cam = GradCAM(net[1])
watch(net, show)
tell(Other())
x = torch.ones(4, 2, requires_grad=True)
net(x).sum().backward()
cam.handle.remove()
print(cam.gradient.sum().item())
"""


def test_a_layer_that_is_not_known_takes_a_hook_of_gradients(tmp_path: Path) -> None:
    """An argument, an attribute, an item of a list or a dictionary; other objects keep theirs."""
    assert_follows(_SCRIPT, tmp_path)
