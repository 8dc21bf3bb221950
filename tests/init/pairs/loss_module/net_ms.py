from mindspore import nn, ops
from mindspore.experimental import optim


class FocalLoss(nn.Cell):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def construct(self, logits, target):
        ce = ops.cross_entropy(logits, target, reduction="none")
        return ((1 - ops.exp(-ce)) ** self.gamma * ce).mean()


class Tagger(nn.Cell):
    def __init__(self, features=6, classes=4):
        super().__init__()
        self.rnn = nn.LSTM(features, 8, batch_first=True)
        self.head = nn.Dense(8, classes)

    def construct(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def make_optimizer(model, lr=0.01):
    return optim.AdamW(model.trainable_params(), lr=lr, weight_decay=0.01)
