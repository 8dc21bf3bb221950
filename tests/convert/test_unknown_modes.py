"""Modes of networks of which nothing is known: what they are shows when the port runs."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both


def test_modes_of_unknown_networks_within_expressions(tmp_path: Path) -> None:
    files = {
        "net.py": """
            import torch
            from torch import nn

            MADE = {}

            class Trainer:
                def train(self, rounds):
                    return rounds + 1

            class Net(nn.Module):
                def __init__(self, size):
                    super().__init__()
                    self.fc = nn.Linear(2, size)
                    self.drop = nn.Dropout(0.5)

                def forward(self, x):
                    return self.drop(self.fc(x))

            MADE["net"], MADE["trainer"] = Net, Trainer

            def build(name, *given):
                return MADE[name](*given)

            def said(x):
                net, trainer = build("net", 3), build("trainer")
                same = torch.equal(net.eval()(x), net.eval()(x))
                modes = [net.training, net.cpu().train().training, net.train(False).training]
                done = trainer.train(3)
                return [same, modes, done, trainer.train(4), build("net", 1).eval().training]
        """
    }
    port, _ = converted(tmp_path, files)
    expected, found = run_both(
        tmp_path, port, "import json, net\nprint(json.dumps(net.said(TENSOR([[1.0, 2.0]]))))"
    )
    assert found == expected
