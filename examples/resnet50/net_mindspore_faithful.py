"""ResNet-50 in MindSpore, ported by hand so that it computes what net_torch.py computes."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal

BATCH_SIZE = 2  # of the case files
BASE_LEARNING_RATE = 0.256 * BATCH_SIZE / 256  # the recipe's rate is for batches of 256
MOMENTUM = 0.875
WEIGHT_DECAY = 1 / 32768
TOTAL_STEPS = 100


def convolution(in_channels, out_channels, kernel_size, stride=1):
    """Return a convolution padded by half its kernel on every side, as PyTorch pads it."""
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        pad_mode="pad",
        padding=kernel_size // 2,
        has_bias=False,
        weight_init=HeNormal(mode="fan_out", nonlinearity="relu"),
    )


def batch_norm(channels):
    """Return a batch normalisation with PyTorch's epsilon and running average."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.9)


class Bottleneck(nn.Cell):
    """A 1x1, 3x3, 1x1 residual block whose stride sits in the 3x3 convolution."""

    expansion = 4

    def __init__(self, in_channels, channels, stride=1, down_sample=None):
        super().__init__()
        out_channels = channels * self.expansion
        self.conv1 = convolution(in_channels, channels, 1)
        self.bn1 = batch_norm(channels)
        self.conv2 = convolution(channels, channels, 3, stride)
        self.bn2 = batch_norm(channels)
        self.conv3 = convolution(channels, out_channels, 1)
        self.bn3 = batch_norm(out_channels)
        self.relu = nn.ReLU()
        self.down_sample = down_sample

    def construct(self, x):
        shortcut = x
        if self.down_sample is not None:
            shortcut = self.down_sample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        return self.relu(x + shortcut)


class ResNet(nn.Cell):
    """A stem, four stages of bottlenecks, global average pooling and a dense head."""

    def __init__(self, blocks_per_stage, num_classes):
        super().__init__()
        self.in_channels = 64
        self.conv1 = convolution(3, 64, 7, stride=2)
        self.bn1 = batch_norm(64)
        self.relu = nn.ReLU()
        self.max_pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="pad", padding=1)
        self.layer1 = self._stage(64, blocks_per_stage[0], stride=1)
        self.layer2 = self._stage(128, blocks_per_stage[1], stride=2)
        self.layer3 = self._stage(256, blocks_per_stage[2], stride=2)
        self.layer4 = self._stage(512, blocks_per_stage[3], stride=2)
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Dense(512 * Bottleneck.expansion, num_classes)

    def _stage(self, channels, blocks, stride):
        out_channels = channels * Bottleneck.expansion
        down_sample = None
        if stride != 1 or self.in_channels != out_channels:
            down_sample = nn.SequentialCell(
                convolution(self.in_channels, out_channels, 1, stride), batch_norm(out_channels)
            )
        layers = [Bottleneck(self.in_channels, channels, stride, down_sample)]
        self.in_channels = out_channels
        layers += [Bottleneck(out_channels, channels) for _ in range(1, blocks)]
        return nn.SequentialCell(*layers)

    def construct(self, x):
        x = self.max_pool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = ops.flatten(self.avg_pool(x))
        return self.fc(x)


def build(num_classes=1000):
    """Build ResNet-50 with the initialisation of the reference."""
    return ResNet([3, 4, 6, 3], num_classes)


def loss(output, target):
    """Return the label-smoothed cross entropy, averaged over the batch."""
    return ops.cross_entropy(output, target.astype(ms.int32), label_smoothing=0.1)


def learning_rates():
    """Return the learning rate of every step of the cosine schedule."""
    return [
        BASE_LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * step / TOTAL_STEPS))
        for step in range(TOTAL_STEPS)
    ]


def optimizer(model):
    """Return SGD, which decays only convolution and head weights, with its cosine schedule."""
    decayed = [parameter for parameter in model.trainable_params() if parameter.ndim > 1]
    not_decayed = [parameter for parameter in model.trainable_params() if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    return nn.SGD(groups, learning_rate=learning_rates(), momentum=MOMENTUM)
