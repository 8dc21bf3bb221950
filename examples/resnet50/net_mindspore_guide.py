"""ResNet-50 in MindSpore, in the manner of MindSpore's published migration example.

It has the right number of parameters in the right shapes and it trains, yet it is another network
than net_torch.py: every padding is "same", and a bottleneck that halves the image does so by
pooling instead of by a stride. Its loss and optimizer are those of net_mindspore_faithful.py.
"""

from mindspore import nn, ops
from mindspore.common.initializer import HeNormal


def conv1x1(in_channel, out_channel, stride=1):
    """Return a 1x1 convolution."""
    return _conv(in_channel, out_channel, 1, stride)


def conv3x3(in_channel, out_channel, stride=1):
    """Return a 3x3 convolution."""
    return _conv(in_channel, out_channel, 3, stride)


def conv7x7(in_channel, out_channel, stride=1):
    """Return a 7x7 convolution."""
    return _conv(in_channel, out_channel, 7, stride)


def _conv(in_channel, out_channel, kernel_size, stride):
    weight = HeNormal(mode="fan_out", nonlinearity="relu")
    return nn.Conv2d(
        in_channel, out_channel, kernel_size, stride, pad_mode="same", weight_init=weight
    )


def bn(channel):
    """Return a batch normalisation."""
    return nn.BatchNorm2d(channel, eps=1e-5, momentum=0.9)


class ResidualBlock(nn.Cell):
    """A bottleneck; where it halves the image, the cell `e2` stands for the 3x3 convolution."""

    expansion = 4

    def __init__(self, in_channel, out_channel, stride=1):
        super().__init__()
        channel = out_channel // self.expansion
        self.halves = stride != 1
        self.conv1 = conv1x1(in_channel, channel)
        self.bn1 = bn(channel)
        if self.halves:
            self.e2 = nn.SequentialCell(
                [
                    conv3x3(channel, channel),
                    bn(channel),
                    nn.ReLU(),
                    nn.MaxPool2d(kernel_size=2, stride=2, pad_mode="same"),
                ]
            )
        else:
            self.conv2 = conv3x3(channel, channel)
            self.bn2 = bn(channel)
        self.conv3 = conv1x1(channel, out_channel)
        self.bn3 = bn(out_channel)
        self.relu = nn.ReLU()
        self.down_sample = stride != 1 or in_channel != out_channel
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell(
                [
                    conv1x1(in_channel, out_channel, stride),
                    bn(out_channel),
                ]
            )

    def construct(self, x):
        identity = x
        if self.down_sample:
            identity = self.down_sample_layer(x)
        out = self.relu(self.bn1(self.conv1(x)))
        if self.halves:
            out = self.e2(out)
        else:
            out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + identity)


class ResNet(nn.Cell):
    """A stem, four stages of residual blocks, a mean over the image and the dense `end_point`."""

    def __init__(self, layer_nums, num_classes):
        super().__init__()
        self.conv1 = conv7x7(3, 64, stride=2)
        self.bn1 = bn(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = self._make_layer(layer_nums[0], 64, 256, stride=1)
        self.layer2 = self._make_layer(layer_nums[1], 256, 512, stride=2)
        self.layer3 = self._make_layer(layer_nums[2], 512, 1024, stride=2)
        self.layer4 = self._make_layer(layer_nums[3], 1024, 2048, stride=2)
        self.mean = ops.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(2048, num_classes)

    def _make_layer(self, layer_num, in_channel, out_channel, stride):
        blocks = [ResidualBlock(in_channel, out_channel, stride)]
        blocks += [ResidualBlock(out_channel, out_channel) for _ in range(1, layer_num)]
        return nn.SequentialCell(blocks)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.flatten(self.mean(x, (2, 3)))
        return self.end_point(x)


def build(num_classes=1000):
    """Build the migration example's ResNet-50."""
    return ResNet([3, 4, 6, 3], num_classes)
