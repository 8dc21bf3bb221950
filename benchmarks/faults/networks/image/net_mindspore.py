"""The image classifier in MindSpore; resizing and batch normalisation are written by hand."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

LOSS_SCALE = 64.0


def cubic(distance, a=-0.75):
    """Return the cubic convolution kernel."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def cubic_matrix(source, target):
    """Return the matrix that resizes `source` samples to `target` by cubic convolution."""
    matrix = np.zeros((target, source))
    for row in range(target):
        centre = (row + 0.5) * source / target - 0.5
        first = int(np.floor(centre)) - 1
        for column in range(first, first + 4):
            matrix[row, min(max(column, 0), source - 1)] += cubic(centre - column)
    return Tensor(matrix, ms.float32)


def area_matrix(source, target):
    """Return the matrix of a linear resize that first widens its kernel, against aliasing."""
    scale = max(source / target, 1.0)
    centres = (np.arange(target) + 0.5) * source / target - 0.5
    distance = np.abs(np.arange(source)[None] - centres[:, None]) / scale
    weights = np.maximum(1.0 - distance, 0.0)
    return Tensor(weights / weights.sum(axis=1, keepdims=True), ms.float32)


def resize(x, rows, columns):
    """Resize the last two axes with one matrix each."""
    return ops.matmul(ops.matmul(rows, x), columns.T)


class Preprocess(nn.Cell):
    """From bytes to normalised numbers."""

    def __init__(self, height, width):
        super().__init__()
        self.target_size = (height, width)
        self.mean = Tensor(np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1), ms.float32)
        self.std = Tensor(np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1), ms.float32)

    def construct(self, image):
        x = image.astype(ms.float32)
        energy = (x * x).sum(axis=1, keepdims=True)
        exposure = ops.sqrt(energy.mean(axis=(2, 3), keep_dims=True)) / 240.0
        x = x / 255.0 / exposure
        x = ops.interpolate(x, size=self.target_size, mode="bilinear", align_corners=False)
        return (x - self.mean) / self.std


class BatchNorm(nn.Cell):
    """Batch normalisation with PyTorch's conventions."""

    def __init__(self, channels, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gamma = Parameter(ops.ones((channels,), ms.float32))
        self.beta = Parameter(ops.zeros((channels,), ms.float32))
        self.moving_mean = Parameter(ops.zeros((channels,), ms.float32), requires_grad=False)
        self.moving_variance = Parameter(ops.ones((channels,), ms.float32), requires_grad=False)
        self.eps, self.momentum = eps, momentum

    def construct(self, x):
        if self.training:
            mean = x.mean(axis=(0, 2, 3))
            var = ops.square(x - mean.reshape(1, -1, 1, 1)).mean(axis=(0, 2, 3))
            self.update(ops.stop_gradient(mean), ops.stop_gradient(var), x.size // x.shape[1])
        else:
            mean, var = self.moving_mean, self.moving_variance
        scale = self.gamma / ops.sqrt(var + self.eps)
        shift = self.beta - mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def update(self, mean, var, count):
        """Move the running statistics; the variance without bias."""
        var = var * count / (count - 1)
        keep = 1 - self.momentum
        ops.assign(self.moving_mean, keep * self.moving_mean + self.momentum * mean)
        ops.assign(self.moving_variance, keep * self.moving_variance + self.momentum * var)


class Neck(nn.Cell):
    """The features beside those of a smaller image."""

    def __init__(self, in_channels):
        super().__init__()
        self.reduce = nn.Conv2d(in_channels, 10, 3, pad_mode="valid", has_bias=True)
        self.down = (area_matrix(12, 7), area_matrix(10, 6))
        self.up = (cubic_matrix(7, 12), cubic_matrix(6, 10))

    def construct(self, x):
        y = resize(x, *self.down)
        y = ops.pad(y, (1, 1, 1, 1), mode="replicate")
        y = ops.relu(self.reduce(y))
        y = resize(y, *self.up)
        return ops.cat((x, y), axis=1)


class Classifier(nn.Cell):
    """The whole model."""

    def __init__(self, num_classes):
        super().__init__()
        self.preprocess = Preprocess(24, 20)
        self.stem = nn.Conv2d(3, 12, 3, pad_mode="valid", has_bias=True)
        self.gn1 = nn.GroupNorm(3, 12, eps=1e-5)
        self.group_conv = nn.Conv2d(12, 16, 3, 2, pad_mode="pad", padding=1, group=4)
        self.bn = BatchNorm(16)
        self.neck = Neck(16)
        self.avg_pool = nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, count_include_pad=False)
        self.point = nn.Conv2d(26, 18, 1, has_bias=True)
        self.gn2 = nn.GroupNorm(6, 18, eps=1e-5)
        self.lrelu = nn.LeakyReLU(0.2)
        self.fc = nn.Dense(18, num_classes)

    def construct(self, image):
        x = self.preprocess(image)
        x = self.stem(ops.pad(x, (1, 1, 1, 1), mode="reflect"))
        x = ops.silu(self.gn1(x))
        x = self.group_conv(x)
        x = ops.hardswish(self.bn(x))
        x = self.avg_pool(self.neck(x))
        x = self.lrelu(self.gn2(self.point(x)))
        return self.fc(x.mean((2, 3)))


def build():
    """Build the model."""
    return Classifier(7)


def loss(output, label):
    """Return the scaled cross entropy."""
    return ops.cross_entropy(output, label.astype(ms.int32)) * LOSS_SCALE


class ScaledSGD:
    """Undo the loss scale, then Nesterov's SGD."""

    def __init__(self, params):
        rates = [0.04 * 0.5 ** (step // 2) for step in range(100)]
        groups = [{"params": params, "weight_decay": 1e-3}]
        self.inner = nn.SGD(groups, rates, momentum=0.9, nesterov=True)
        self.parameters = self.inner.parameters

    def __call__(self, grads):
        return self.inner(tuple(g / LOSS_SCALE for g in grads))


def optimizer(net):
    """Return the optimizer."""
    return ScaledSGD(net.trainable_params())
