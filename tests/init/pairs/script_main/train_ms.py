import mindspore as ms
import numpy as np
from mindspore import nn


class Regressor(nn.Cell):
    def __init__(self, features, hidden):
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(features, hidden), nn.Tanh(), nn.Dense(hidden, 1))

    def construct(self, x):
        return self.net(x)


def main():
    data = np.random.randn(512, 12).astype(np.float32)
    labels = data.sum(axis=1, keepdims=True)
    model = Regressor(12, hidden=24)
    criterion = nn.MSELoss()
    optimizer = nn.Adam(model.trainable_params(), learning_rate=1e-3)

    def forward_fn(x, y):
        return criterion(model(x), y)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)
    for epoch in range(3):
        for start in range(0, 512, 32):
            x = ms.Tensor(data[start : start + 32])
            y = ms.Tensor(labels[start : start + 32])
            loss, grads = grad_fn(x, y)
            optimizer(grads)
        print(epoch, loss)


if __name__ == "__main__":
    main()
