import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore.experimental import optim


class ResidualLayer(nn.Cell):
    def __init__(self, channels, skip_channels, dilation):
        super().__init__()
        self.dilation = dilation
        self.conv_tanh = nn.Conv1d(
            channels, channels, 2, pad_mode="valid", dilation=dilation, has_bias=True
        )
        self.conv_sigmoid = nn.Conv1d(
            channels, channels, 2, pad_mode="valid", dilation=dilation, has_bias=True
        )
        self.conv_skip = nn.Conv1d(channels, skip_channels, 1, has_bias=True)
        self.conv_res = nn.Conv1d(channels, channels, 1, has_bias=True)
        self.tanh = nn.Tanh()
        self.sigmoid = nn.Sigmoid()

    def construct(self, x):
        padded = ops.pad(x, (self.dilation, 0))
        z = self.tanh(self.conv_tanh(padded)) * self.sigmoid(self.conv_sigmoid(padded))
        skip = self.conv_skip(z)
        return self.conv_res(z) + x, skip


class WaveNet(nn.Cell):
    def __init__(self, bins=16, c=12, s=20):
        super().__init__()
        self.embedding = nn.Embedding(bins, c, embedding_table="normal")
        self.layers = nn.CellList([ResidualLayer(c, s, 2**i) for i in range(4)])
        self.post = nn.SequentialCell(
            nn.ReLU(),
            nn.Conv1d(s, s, 1, has_bias=True),
            nn.ReLU(),
            nn.Conv1d(s, bins, 1, has_bias=True),
        )

    def construct(self, x):
        h = self.embedding(x).swapaxes(1, 2)
        skips = []
        for layer in self.layers:
            h, skip = layer(h)
            skips.append(skip)
        return self.post(sum(skips))


def build():
    return WaveNet()


def loss(logits, target):
    return ops.cross_entropy(logits, target.astype(ms.int32))


def optimizer(model):
    opt = optim.AdamW(model.trainable_params(), lr=1e-3, weight_decay=0.01)
    return opt, optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
