"""The mixture in MindSpore."""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.experimental import optim


class Mixture(nn.Cell):
    def __init__(self, width=12, experts=3, classes=6):
        super().__init__()
        self.stem = nn.Dense(8, width)
        self.gate = nn.Dense(width, experts)
        self.experts = nn.CellList([nn.Dense(width, width) for _ in range(experts)])
        self.temperature = Parameter(Tensor(1.5, ms.float32))
        self.head = nn.Dense(2 * width, classes)

    def construct(self, x):
        h = ops.tanh(self.stem(x))
        weight = ops.softmax(self.gate(h) / self.temperature, axis=-1)
        each = ops.stack([expert(h) for expert in self.experts], axis=-1)
        mixed = (each * weight.expand_dims(-2)).sum(-1)
        scale = ops.abs(mixed).mean(-1, keep_dims=True)
        return self.head(ops.cat((h, mixed / (scale + 0.1)), axis=-1))


def build():
    return Mixture()


def loss(logits, target):
    return ops.cross_entropy(logits, target.astype(ms.int32))


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=1e-3, weight_decay=0.01)
