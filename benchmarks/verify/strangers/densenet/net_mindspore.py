import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal


class BottleneckLayer(nn.Cell):
    def __init__(self, i, growth):
        super().__init__()
        self.branch = nn.SequentialCell(
            nn.BatchNorm2d(i),
            nn.ReLU(),
            nn.Conv2d(
                i, 4 * growth, 1, weight_init=HeNormal(mode="fan_in", nonlinearity="leaky_relu")
            ),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(),
            nn.Conv2d(
                4 * growth,
                growth,
                3,
                pad_mode="pad",
                padding=1,
                weight_init=HeNormal(mode="fan_in", nonlinearity="leaky_relu"),
            ),
        )

    def construct(self, x):
        return ops.concat((x, self.branch(x)), 1)


class DenseNet(nn.Cell):
    def __init__(self, growth=6):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, weight_init=HeNormal())
        self.stage1 = nn.SequentialCell([BottleneckLayer(12 + 6 * k, growth) for k in range(3)])
        self.trans_bn = nn.BatchNorm2d(30)
        self.trans_conv = nn.Conv2d(30, 16, 1, weight_init=HeNormal())
        self.stage2 = nn.SequentialCell([BottleneckLayer(16 + 6 * k, growth) for k in range(2)])
        self.final_bn = nn.BatchNorm2d(28)
        self.fc = nn.Dense(28, 5)
        self.relu = nn.ReLU()
        self.pool = nn.AvgPool2d(2, 2)

    def construct(self, x):
        x = self.stage1(self.stem(x))
        x = self.pool(self.trans_conv(self.relu(self.trans_bn(x))))
        x = self.relu(self.final_bn(self.stage2(x)))
        return self.fc(ops.mean(x, (2, 3)))


def build():
    return DenseNet()


def loss(y, t):
    return ops.cross_entropy(y, t.astype(ms.int32))


def optimizer(model):
    groups = [{"params": model.trainable_params(), "weight_decay": 1e-4}]
    return nn.SGD(groups, learning_rate=0.05, momentum=0.9)
