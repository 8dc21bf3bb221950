import mindspore.nn as nn
import mindspore.ops as ops


class Block(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1)
        self.bn = nn.BatchNorm2d(channels)

    def construct(self, x):
        return ops.relu(self.bn(self.conv(x)) + x)


class SmallNet(nn.Cell):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.blocks = nn.SequentialCell(Block(8), Block(8))
        self.head = nn.Dense(8, num_classes)

    def construct(self, x):
        x = self.blocks(self.stem(x))
        return self.head(ops.flatten(ops.adaptive_avg_pool2d(x, 1)))
