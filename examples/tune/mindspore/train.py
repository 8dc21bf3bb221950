"""The port of ../torch/train.py: the same network, data and hyper-parameters."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindinsight.optimizer.hyper_config import HyperConfig
from mindspore import nn
from sklearn.datasets import load_digits

TRAINING, EPOCHS = 1_200, 2


def linear(inputs: int, outputs: int) -> nn.Dense:
    """A dense layer that starts as torch's does."""
    bound = 1 / inputs**0.5
    return nn.Dense(
        inputs,
        outputs,
        weight_init=ms.common.initializer.Uniform(bound),
        bias_init=ms.common.initializer.Uniform(bound),
    )


def train(learning_rate: float, momentum: float, weight_decay: float, batch_size: int) -> float:
    """Mean cross entropy over the samples that were not trained on."""
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(0)
    digits = load_digits()
    images = ms.Tensor((digits.data / 16.0).astype(np.float32))
    labels = ms.Tensor(digits.target.astype(np.int32))
    network = nn.SequentialCell(linear(64, 32), nn.Tanh(), linear(32, 10))
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.SGD(
        network.trainable_params(), learning_rate, momentum=momentum, weight_decay=weight_decay
    )
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss_of), optimizer)
    step.set_train()
    for _ in range(EPOCHS):
        for start in range(0, TRAINING - batch_size + 1, batch_size):
            part = slice(start, start + batch_size)
            step(images[part], labels[part])
    return float(loss_of(network(images[TRAINING:]), labels[TRAINING:]).asnumpy())


if __name__ == "__main__":
    chosen = HyperConfig().params
    loss = train(chosen.learning_rate, chosen.momentum, chosen.weight_decay, chosen.batch_size)
    print("loss:", loss)
