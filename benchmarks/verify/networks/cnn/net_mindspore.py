"""The small residual network, ported by hand to MindSpore."""

from mindspore import dtype, nn, ops

LEARNING_RATE = 0.05
WARM_UP_STEPS = 8
TOTAL_STEPS = 100


def conv3x3(in_channels, out_channels, stride=1):
    """Return a 3x3 convolution without bias, padded by one on every side."""
    return nn.Conv2d(in_channels, out_channels, 3, stride, pad_mode="pad", padding=1)


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = conv3x3(in_channels, out_channels, stride)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = conv3x3(out_channels, out_channels)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU()
        self.down_sample = None
        if stride != 1 or in_channels != out_channels:
            self.down_sample = nn.SequentialCell(
                nn.Conv2d(in_channels, out_channels, 1, stride, pad_mode="valid"),
                nn.BatchNorm2d(out_channels),
            )

    def construct(self, x):
        identity = x
        if self.down_sample is not None:
            identity = self.down_sample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + identity)


class Backbone(nn.Cell):
    """The convolutional part of the network."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(
            nn.Conv2d(3, 16, 3, pad_mode="pad", padding=1, has_bias=True),
            nn.BatchNorm2d(16, eps=1e-5, momentum=0.9),
            nn.ReLU(),
        )
        self.max_pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="pad", padding=1)
        self.stages = nn.SequentialCell(BasicBlock(16, 16), BasicBlock(16, 32, stride=2))
        self.context = nn.Conv2d(32, 32, 3, pad_mode="pad", padding=2, dilation=2, has_bias=True)
        self.last_block = BasicBlock(32, 32)
        self.avg_pool = nn.AvgPool2d(kernel_size=3, stride=2, pad_mode="pad", padding=1)

    def construct(self, x):
        x = self.max_pool(self.stem(x))
        x = self.stages(x)
        x = ops.leaky_relu(self.context(x), 0.1)
        x = self.last_block(x)
        return self.avg_pool(x)


class Network(nn.Cell):
    """The backbone, a mean over the image and a dense classifier."""

    def __init__(self, num_classes):
        super().__init__()
        self.backbone = Backbone()
        self.classifier = nn.Dense(32, num_classes)

    def construct(self, x):
        features = self.backbone(x).mean(axis=(2, 3))
        return self.classifier(features)


def build(num_classes=10):
    """Build the network; MindSpore's defaults initialise these layers as PyTorch's do."""
    return Network(num_classes)


def loss(output, target):
    """Return the label-smoothed cross entropy, averaged over the batch."""
    return ops.cross_entropy(output, target.astype(dtype.int32), label_smoothing=0.1)


def learning_rates():
    """Return the learning rate of every step: a linear warm-up, then a constant."""
    return [LEARNING_RATE * min(1.0, (step + 1) / WARM_UP_STEPS) for step in range(TOTAL_STEPS)]


def optimizer(model):
    """Return SGD, which decays neither normalisation nor biases, with a linear warm-up."""
    parameters = model.trainable_params()
    decayed = [parameter for parameter in parameters if parameter.ndim > 1]
    not_decayed = [parameter for parameter in parameters if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": 5e-4},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    return nn.SGD(groups, learning_rate=learning_rates(), momentum=0.9)
