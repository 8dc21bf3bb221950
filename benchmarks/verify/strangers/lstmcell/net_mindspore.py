"""The stepped LSTM in MindSpore; the cell's gates are written out with one fused matrix."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class FusedLSTM(nn.Cell):
    """One step; w_x and w_h are kept as (in, 4 * hidden)."""

    def __init__(self, features, hidden):
        super().__init__()
        k = 1 / np.sqrt(hidden)

        def u(*s):
            return Tensor(np.random.uniform(-k, k, s).astype(np.float32))

        self.w_x = Parameter(u(features, 4 * hidden))
        self.w_h = Parameter(u(hidden, 4 * hidden))
        self.b_x = Parameter(u(4 * hidden))
        self.b_h = Parameter(u(4 * hidden))

    def construct(self, x, h, c):
        gates = ops.matmul(x, self.w_x) + self.b_x + ops.matmul(h, self.w_h) + self.b_h
        i, f, g, o = ops.split(gates, gates.shape[1] // 4, axis=1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return h, c


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = 20
        self.lstm = FusedLSTM(6, 20)
        self.ln = nn.LayerNorm((20,), epsilon=1e-5)
        self.classifier = nn.Dense(20, 5)

    def construct(self, x):
        h = ops.zeros((x.shape[0], self.hidden), x.dtype)
        c = ops.zeros((x.shape[0], self.hidden), x.dtype)
        for t in range(x.shape[1]):
            h, c = self.lstm(x[:, t], h, c)
        return self.classifier(self.ln(h))


def build():
    return Network()


loss_fn = nn.CrossEntropyLoss()


def loss(logits, target):
    return loss_fn(logits, target.astype(ms.int32))


def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1, momentum=0.9, nesterov=True)
