"""The rounded surrogate model in MindSpore."""

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.experimental import optim


def rounded(x):
    """Round to what bfloat16 holds, forwards and backwards."""
    return x.astype(ms.bfloat16).astype(ms.float32)


class Dense(nn.Dense):
    """A dense layer with a bfloat16 result."""

    def construct(self, x):
        return rounded(super().construct(x))


class Norm(nn.Cell):
    """Layer normalisation over the last axis, written out."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = Parameter(ops.ones((width,), ms.float32))
        self.bias = Parameter(ops.zeros((width,), ms.float32))
        self.eps = eps

    def construct(self, x):
        mu = x.mean(axis=-1, keep_dims=True)
        var = x.var(axis=-1, keepdims=True)
        y = (x - mu) / ops.sqrt(var + self.eps)
        return rounded(y * self.weight + self.bias)


class Residual(nn.Cell):
    """One residual block."""

    def __init__(self, dim, inner):
        super().__init__()
        self.ln = Norm(dim)
        self.up = Dense(dim, inner)
        self.down = Dense(inner, dim)

    def construct(self, x):
        h = self.ln(x)
        h = self.up(h)
        h = rounded(ops.gelu(h))
        return rounded(self.down(h) + x)


class Net(nn.Cell):
    """The whole network."""

    def __init__(self):
        super().__init__()
        self.stem = Dense(11, 20)
        self.body = nn.CellList([Residual(20, 44), Residual(20, 44)])
        self.ln = Norm(20)
        self.glu = Dense(20, 28)
        self.drop = nn.Dropout(p=0.1)
        self.out = Dense(28, 6)

    def construct(self, x):
        x = rounded(ops.leaky_relu(self.stem(x), 0.1))
        for block in self.body:
            x = block(x)
        x = self.ln(x)
        a, b = ops.split(self.glu(x), 14, axis=-1)
        x = rounded(a * rounded(ops.sigmoid(b)))
        mu = rounded(x.mean(axis=1))
        dev = rounded(ops.abs(x - mu.expand_dims(1)).mean(axis=1))
        x = ops.stack((mu, dev), axis=1).reshape(x.shape[0], -1)
        x = self.drop(x)
        return self.out(x)


def build():
    """Build the network."""
    return Net()


def loss(pred, target):
    """Return the mean squared error."""
    return ops.mse_loss(pred, target)


def optimizer(net):
    """Return AdamW in two groups."""
    params = net.trainable_params()
    matrices = [p for p in params if p.name.endswith("weight") and "ln." not in p.name]
    others = [p for p in params if not (p.name.endswith("weight") and "ln." not in p.name)]
    groups = [
        {"params": matrices, "weight_decay": 0.05},
        {"params": others, "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.99), eps=1e-7)
