"""What a compiled step returns is known behind it: its tensors' methods are MindSpore's own."""

from __future__ import annotations

from tests.convert.support import port_of

_CODE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x)


def build():
    return torch.utils.data.TensorDataset(torch.ones(8, 4), torch.zeros(8, 3))


net = Net()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader):
    right = 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        _, predicted = outputs.max(1)
        right += predicted.eq(1).sum().item()
    return right


train(torch.utils.data.DataLoader(build()))
"""


def test_results_of_a_compiled_step_are_known() -> None:
    port, findings = port_of(_CODE)
    assert "training_step(" in port
    assert "outputs.max(" not in port
    assert ".eq(" not in port
    assert [finding.code for finding in findings] == []
