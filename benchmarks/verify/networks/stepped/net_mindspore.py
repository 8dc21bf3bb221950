"""The classifier in MindSpore, with its own nn.LSTMCell."""

import mindspore as ms
from mindspore import nn, ops


class Classifier(nn.Cell):
    def __init__(self, features=6, hidden=12, classes=5):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(features, hidden)
        self.head = nn.Dense(hidden, classes)

    def construct(self, x):
        h = ops.zeros((x.shape[0], self.hidden), ms.float32)
        c = ops.zeros((x.shape[0], self.hidden), ms.float32)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h)


def build():
    return Classifier()


def loss(logits, target):
    return ops.cross_entropy(logits, target.astype(ms.int32))


def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1, momentum=0.9)
