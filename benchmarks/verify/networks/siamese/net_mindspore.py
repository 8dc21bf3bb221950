"""The siamese network in MindSpore."""

from mindspore import nn, ops


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.fc = nn.Dense(12, 10)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv1(x)))
        return self.fc(ops.relu(self.conv2(x)).mean((2, 3)))


class Siamese(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.predictor = nn.SequentialCell(nn.Dense(10, 14), nn.ReLU(), nn.Dense(14, 10))

    def construct(self, a, b):
        u, v = self.encoder(a), self.encoder(b)
        p, q = self.predictor(u), self.predictor(v)
        near = ops.cosine_similarity(p, v) + ops.cosine_similarity(q, u)
        return ops.stack((near, (u - v).pow(2).sum(1)), 1)


def build():
    return Siamese()


def loss(output, target):
    return ops.mse_loss(output, target)


def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.05, momentum=0.9)
