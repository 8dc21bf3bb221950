"""The small U-Net, ported by hand to MindSpore."""

from mindspore import nn, ops
from mindspore.experimental import optim


class DoubleConvolution(nn.Cell):
    """Two 3x3 convolutions, each followed by batch normalisation and a leaky ReLU."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(out_channels, eps=1e-5, momentum=0.9)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(out_channels, eps=1e-5, momentum=0.9)
        self.activation = nn.LeakyReLU(alpha=0.2)

    def construct(self, x):
        x = self.activation(self.bn1(self.conv1(x)))
        return self.activation(self.bn2(self.conv2(x)))


class Up(nn.Cell):
    """Enlarge the deep features, join them with the shallow ones and convolve."""

    def __init__(self, deep_channels, shallow_channels):
        super().__init__()
        self.convolutions = DoubleConvolution(deep_channels + shallow_channels, shallow_channels)

    def construct(self, deep, shallow):
        size = shallow.shape[-2:]
        deep = ops.interpolate(deep, size=size, mode="bilinear", align_corners=True)
        return self.convolutions(ops.cat((shallow, deep), axis=1))


class UNet(nn.Cell):
    """Three levels of features with skip connections and a 1x1 convolution as head."""

    def __init__(self, channels):
        super().__init__()
        self.down1 = DoubleConvolution(3, channels)
        self.down2 = DoubleConvolution(channels, 2 * channels)
        self.bottom = DoubleConvolution(2 * channels, 4 * channels)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.up2 = Up(4 * channels, 2 * channels)
        self.up1 = Up(2 * channels, channels)
        self.head = nn.Conv2d(channels, 1, 1, pad_mode="valid", has_bias=True)

    def construct(self, x):
        shallow = self.down1(x)
        middle = self.down2(self.pool(shallow))
        deep = self.bottom(self.pool(middle))
        x = self.up2(deep, middle)
        x = self.up1(x, shallow)
        return self.head(x)


def build(channels=8):
    """Build the U-Net; MindSpore's defaults initialise these layers as PyTorch's do."""
    return UNet(channels)


def loss(output, target):
    """Return the binary cross entropy of every pixel, averaged."""
    weight = ops.ones_like(output)
    return ops.binary_cross_entropy_with_logits(output, target, weight, weight)


def optimizer(model):
    """Return RMSprop with momentum and the same decay for every parameter."""
    parameters = model.trainable_params()
    return optim.RMSprop(parameters, lr=1e-3, alpha=0.9, eps=1e-8, momentum=0.9, weight_decay=1e-3)
