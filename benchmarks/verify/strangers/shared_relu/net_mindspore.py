import mindspore as ms
from mindspore import Parameter, nn, ops


class Refine(nn.Cell):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Dense(d, d, activation="relu")
        self.ln = nn.LayerNorm((d,), epsilon=1e-5)

    def construct(self, x):
        return x + self.ln(self.fc(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        cells = []
        for i in (1, 6):
            cells += [
                nn.Conv2d(i, 6, 3, pad_mode="pad", padding=1, has_bias=True),
                nn.ReLU(),
                nn.MaxPool2d(2, 2),
            ]
        cells += [
            nn.Conv2d(6, 6, 3, pad_mode="pad", padding=1, has_bias=True),
            nn.ReLU(),
            nn.Flatten(),
        ]
        self.trunk = nn.SequentialCell(cells)
        self.refine = Refine(54)
        self.code = nn.Dense(54, 10, has_bias=False)
        self.decoder_bias = Parameter(ops.zeros((54,), ms.float32))

    def construct(self, x):
        x = self.trunk(x)
        x = self.refine(self.refine(self.refine(x)))
        z = ops.relu(self.code(x))
        return ops.matmul(z, self.code.weight) + self.decoder_bias, z


def build():
    return Net()


def loss(out, target):
    y, z = out
    return ops.abs(y - target).mean() + 0.01 * ops.abs(z).mean()


def optimizer(model):
    return nn.SGD(
        [{"params": model.trainable_params()}], learning_rate=0.02, momentum=0.9, weight_decay=1e-3
    )
