import mindspore as ms
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inp = nn.Dense(20, 32)
        self.norm = nn.LayerNorm((32,), epsilon=1e-5)
        self.a = nn.Dense(32, 64, dtype=ms.float16)
        self.b = nn.Dense(64, 32, dtype=ms.float16)
        self.head = nn.Dense(32, 5)

    def construct(self, x):
        x = self.norm(self.inp(x))
        h = ops.relu(self.a(x.astype(ms.float16)))
        x = x + self.b(h).astype(ms.float32)
        return self.head(x)


def build():
    return Net()


def loss(y, t):
    return ops.cross_entropy(y, t.astype(ms.int32))


def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1, momentum=0.9)
