"""The same classifier in MindSpore, written by hand; it goes on training from net.ckpt."""

import mindspore as ms
import numpy as np
from mindspore import nn


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.act = nn.GELU()

    def construct(self, x):
        return x + self.act(self.norm(self.conv(x)))


class Net(nn.Cell):
    def __init__(self, width=8, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, 2, pad_mode="pad", padding=1, has_bias=True)
        self.blocks = nn.SequentialCell(Block(width), Block(width))
        self.head = nn.Dense(width, classes)

    def construct(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def main():
    generator = np.random.default_rng(0)
    images = generator.standard_normal((256, 1, 12, 12)).astype(np.float32)
    labels = (images[:, 0, 0, 0] > 0) + 2 * (images[:, 0, 6, 6] > 0)
    model = Net()
    ms.load_param_into_net(model, ms.load_checkpoint("net.ckpt"), strict_load=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = nn.SGD(model.trainable_params(), learning_rate=0.05, momentum=0.9)

    def forward(batch, target):
        return criterion(model(batch), target)

    step = ms.value_and_grad(forward, None, optimizer.parameters)
    for epoch in range(3):
        for start in range(0, 256, 32):
            batch = ms.Tensor(images[start : start + 32])
            target = ms.Tensor(labels[start : start + 32].astype(np.int32))
            loss, gradients = step(batch, target)
            optimizer(gradients)
        print(f"epoch {epoch} loss {float(loss.asnumpy()):.4f}")


if __name__ == "__main__":
    main()
