import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops


class ConvBNAct(nn.SequentialCell):
    def __init__(self, i, o, k, s=1, group=1, act=None):
        cells = [
            nn.Conv2d(i, o, k, s, pad_mode="pad", padding=(k - 1) // 2, group=group),
            nn.BatchNorm2d(o, eps=0.001, momentum=0.99),
        ]
        if act is not None:
            cells.append(act)
        super().__init__(cells)


class SqueezeExcite(nn.Cell):
    def __init__(self, c):
        super().__init__()
        self.reduce = nn.Dense(c, c // 4)
        self.expand = nn.Dense(c // 4, c)
        self.gate = nn.HSigmoid()

    def construct(self, x):
        s = x.mean((2, 3))
        s = self.gate(self.expand(ops.relu(self.reduce(s))))
        return x * s.view(s.shape[0], s.shape[1], 1, 1)


class Bottleneck(nn.Cell):
    def __init__(self, i, o, t, s, act, use_se):
        super().__init__()
        self.expand = ConvBNAct(i, i * t, 1, act=act)
        self.depthwise = ConvBNAct(i * t, i * t, 3, s, group=i * t, act=act)
        self.se = SqueezeExcite(i * t) if use_se else None
        self.project = ConvBNAct(i * t, o, 1)
        self.add = s == 1 and i == o

    def construct(self, x):
        y = self.depthwise(self.expand(x))
        if self.se is not None:
            y = self.se(y)
        y = self.project(y)
        return x + y if self.add else y


class MobileNet(nn.Cell):
    def __init__(self):
        super().__init__()
        hswish, relu6 = nn.HSwish(), nn.ReLU6()
        self.head1 = nn.Dense(12, 24)
        self.head2 = nn.Dense(24, 8)
        self.hswish = hswish
        self.drop = nn.Dropout(p=0.2)
        self.stem = ConvBNAct(3, 8, 3, 2, act=hswish)
        self.layers = nn.CellList(
            [
                Bottleneck(8, 8, 2, 1, relu6, False),
                Bottleneck(8, 12, 2, 2, hswish, True),
                Bottleneck(12, 12, 2, 1, hswish, True),
            ]
        )

    def construct(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        x = self.hswish(self.head1(x.mean((2, 3))))
        return self.head2(self.drop(x))


def build():
    return MobileNet()


def loss(y, t):
    return ops.cross_entropy(y, t.astype(ms.int32))


def optimizer(model):
    rates = [0.05, 0.05, 0.005, 0.005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005]
    return nn.SGD(model.trainable_params(), learning_rate=rates, momentum=0.9, nesterov=True)
