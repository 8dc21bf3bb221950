"""C3D; there is no 3-d convolution on a CPU, so it is a sum of 2-d ones over time."""

import mindspore as ms
from mindspore import nn, ops


class Conv3d(nn.Cell):
    """A (kt, kh, kw) convolution as kt two-dimensional ones of shifted frames."""

    def __init__(self, i, o, kernel, pad, bias):
        super().__init__()
        kt, kh, kw = kernel
        import numpy as np

        k = 1 / np.sqrt(i * kt * kh * kw)
        self.weight = ms.Parameter(
            ms.Tensor(np.random.uniform(-k, k, (o, i, kt, kh, kw)).astype(np.float32))
        )
        self.bias = (
            ms.Parameter(ms.Tensor(np.random.uniform(-k, k, (o,)).astype(np.float32)))
            if bias
            else None
        )
        self.kt, self.pad = kt, pad

    def construct(self, x):
        b, c, t, h, w = x.shape
        pt, ph, pw = self.pad
        x = ops.pad(x.swapaxes(1, 2), (0, 0, 0, 0, 0, 0, pt, pt))
        total = 0
        for k in range(self.kt):
            frames = x[:, k : k + t].reshape(b * t, c, h, w)
            total = total + ops.conv2d(
                frames, self.weight[:, :, k], pad_mode="pad", padding=(ph, pw)
            )
        out = total.reshape(b, t, -1, h, w).swapaxes(1, 2)
        return out if self.bias is None else out + self.bias.view(1, -1, 1, 1, 1)


class BatchNorm3d(nn.Cell):
    def __init__(self, c):
        super().__init__()
        self.bn2d = nn.BatchNorm2d(c)

    def construct(self, x):
        b, c, t, h, w = x.shape
        return self.bn2d(x.reshape(b, c, t * h, w)).reshape(b, c, t, h, w)


class C3D(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv_a = Conv3d(2, 6, (3, 3, 3), (1, 1, 1), True)
        self.bn_a = BatchNorm3d(6)
        self.conv_b = Conv3d(6, 10, (3, 1, 1), (1, 0, 0), False)
        self.bn_b = BatchNorm3d(10)
        self.fc = nn.Dense(10, 3)
        self.pool = nn.MaxPool2d(2, 2)

    def construct(self, x):
        x = ops.relu(self.bn_a(self.conv_a(x)))
        b, c, t, h, w = x.shape
        x = self.pool(x.reshape(b, c * t, h, w)).reshape(b, c, t, h // 2, w // 2)
        x = ops.relu(self.bn_b(self.conv_b(x)))
        return self.fc(x.mean((2, 3, 4)))


def build():
    return C3D()


def loss(y, t):
    return ops.cross_entropy(y, t.astype(ms.int32))


def optimizer(model):
    return nn.Momentum(model.trainable_params(), 0.05, 0.9)
