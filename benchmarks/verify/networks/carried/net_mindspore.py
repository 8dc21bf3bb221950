"""The reader in MindSpore."""

from mindspore import nn, ops
from mindspore.experimental import optim


class Reader(nn.Cell):
    def __init__(self, features=5, hidden=10, chunk=4):
        super().__init__()
        self.chunk = chunk
        self.gru = nn.GRU(features, hidden, batch_first=True)
        self.score = nn.Dense(hidden, 1)
        self.out = nn.Dense(hidden, 3)

    def construct(self, x):
        state, read = None, []
        for start in range(0, x.shape[1], self.chunk):
            y, state = self.gru(x[:, start : start + self.chunk], state)
            read.append(y)
        y = ops.cat(read, 1)
        weight = ops.softmax(self.score(ops.tanh(y)), axis=1)
        return self.out((weight * y).sum(1) + state[-1])


def build():
    return Reader()


def loss(output, target):
    return ops.mse_loss(output, target)


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=1e-3, weight_decay=0.01)
