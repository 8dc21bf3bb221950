"""The tagger, sequence first inside."""

from mindspore import nn, ops


class Tagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Dense(5, 10)
        self.rnn = nn.RNN(10, 14, num_layers=2, bidirectional=True)
        self.outputs = nn.Dense(28, 4)

    def construct(self, x):
        x = x.transpose((1, 0, 2))
        y, h = self.rnn(ops.tanh(self.inputs(x)))
        return self.outputs(y).transpose((1, 0, 2)) + h.mean()


def build():
    return Tagger()


def loss(y, t):
    return ops.smooth_l1_loss(y, t, reduction="mean")


def optimizer(model):
    return nn.SGD(model.trainable_params(), 0.1)
