import argparse

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops


class Net(nn.Cell):
    def __init__(self, width, dropout):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, 1, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, 1, pad_mode="valid", has_bias=True)
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Dense(2 * width * 144, 10)

    def construct(self, x):
        x = ops.relu(self.conv2(ops.relu(self.conv1(x))))
        x = ops.flatten(ops.max_pool2d(x, 2))
        return ops.log_softmax(self.fc(self.dropout(x)), axis=1)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.25)
    parser.add_argument("--lr", type=float, default=1.0)
    return parser.parse_args()


def main(args):
    net = Net(args.width, args.dropout)
    optimizer = nn.Adadelta(net.trainable_params(), learning_rate=args.lr, rho=0.9, epsilon=1e-6)

    def forward_fn(data, label):
        logits = net(data)
        loss = ops.nll_loss(logits, label)
        return loss, logits

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
    for data, label in dataset_of("../data").create_tuple_iterator():
        (loss, _), grads = grad_fn(data, label)
        optimizer(grads)


def dataset_of(path):
    dataset = ms.dataset.MnistDataset(path)
    return dataset.batch(64)


if __name__ == "__main__":
    main(get_args())
