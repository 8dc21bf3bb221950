from mindspore import nn, ops
from mindspore.experimental import optim


class Decoder(nn.Cell):
    def __init__(self, latent=8):
        super().__init__()
        self.dense = nn.Dense(latent, 32 * 4 * 4)
        self.deconv1 = nn.Conv2dTranspose(
            32, 16, 4, stride=2, pad_mode="pad", padding=1, has_bias=True
        )
        self.bn1 = nn.BatchNorm2d(16)
        self.act1 = nn.LeakyReLU(0.2)
        self.deconv2 = nn.Conv2dTranspose(16, 8, 3, stride=2, pad_mode="valid")
        self.bn2 = nn.BatchNorm2d(8)
        self.act2 = nn.ReLU()
        self.conv = nn.Conv2d(8, 3, 3, pad_mode="pad", padding=1, has_bias=True)

    def construct(self, z):
        x = self.dense(z).reshape(-1, 32, 4, 4)
        x = self.act1(self.bn1(self.deconv1(x)))
        x = self.deconv2(x)[:, :, 1:, 1:]  # output_padding=1 is wrong on a CPU
        x = self.act2(self.bn2(x))
        x = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
        return ops.sigmoid(self.conv(x))


def build():
    return Decoder()


def loss(y, target):
    return ops.binary_cross_entropy(y, target, ops.ones_like(y))


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=1e-3, betas=(0.5, 0.99), weight_decay=0.01)
