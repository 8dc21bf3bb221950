"""Trains a small network on the digits of scikit-learn; its hyper-parameters come from outside."""

from __future__ import annotations

import torch
from mindinsight.optimizer.hyper_config import HyperConfig
from sklearn.datasets import load_digits
from torch import nn

TRAINING, EPOCHS = 1_200, 2


def train(learning_rate: float, momentum: float, weight_decay: float, batch_size: int) -> float:
    """Mean cross entropy over the samples that were not trained on."""
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
    labels = torch.tensor(digits.target, dtype=torch.int64)
    network = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        network.parameters(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay
    )
    for _ in range(EPOCHS):
        for start in range(0, TRAINING - batch_size + 1, batch_size):
            part = slice(start, start + batch_size)
            optimizer.zero_grad()
            loss_of(network(images[part]), labels[part]).backward()
            optimizer.step()
    with torch.no_grad():
        return float(loss_of(network(images[TRAINING:]), labels[TRAINING:]))


if __name__ == "__main__":
    chosen = HyperConfig().params
    loss = train(chosen.learning_rate, chosen.momentum, chosen.weight_decay, chosen.batch_size)
    print("loss:", loss)
