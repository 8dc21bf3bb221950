"""Train a small CNN on digit-like images with MindSpore; nn.Adadelta has torch's own rule."""
import argparse

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, pad_mode="pad", has_bias=True)
        self.conv2 = nn.Conv2d(32, 64, 3, pad_mode="pad", has_bias=True)
        self.fc1 = nn.Dense(9216, 128)
        self.fc2 = nn.Dense(128, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.relu(self.conv1(x))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc2(x)


def make_digits(n, seed):
    """Ten kinds of four-blob figures, each figure moved a little and with noise on it."""
    kinds = np.random.RandomState(1234).uniform(6, 22, size=(10, 4, 2))
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, size=n)
    centres = kinds[labels] + rng.uniform(-4, 4, size=(n, 1, 2)) + rng.normal(0, 0.5, (n, 4, 2))
    grid = np.arange(28)
    rows = np.exp(-(grid - centres[..., :1]) ** 2 / 8.0)
    cols = np.exp(-(grid - centres[..., 1:]) ** 2 / 8.0)
    images = np.einsum('nkh,nkw->nhw', rows, cols).clip(0, 1)
    images = (images + rng.uniform(0, 0.8, size=images.shape)).clip(0, 1)
    images = (images - 0.1307) / 0.3081
    return images[:, None].astype(np.float32), labels.astype(np.int32)


def make_train_step(model, optimizer):
    def forward_fn(data, target):
        return ops.cross_entropy(model(data), target)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(data, target):
        loss, grads = grad_fn(data, target)
        optimizer(grads)
        return loss

    return train_step


def train(args, model, train_step, train_set, samples, epoch):
    model.set_train()
    batches = train_set.get_dataset_size()
    for batch_idx, (data, target) in enumerate(train_set.create_tuple_iterator(num_epochs=1)):
        loss = train_step(data, target)
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{samples} "
                  f"({100. * batch_idx / batches:.0f}%)]\tloss {loss.item():.6f}")
            if args.dry_run:
                break


def test(model, test_set):
    model.set_train(False)
    test_loss, correct, total = 0.0, 0, 0
    for data, target in test_set.create_tuple_iterator(num_epochs=1):
        output = model(data)
        test_loss += ops.cross_entropy(output, target, reduction="sum").item()
        correct += int((output.argmax(1) == target).sum())
        total += len(target)
    print(f"\nTest set: Average loss: {test_loss / total:.4f}, Accuracy: {correct}/{total} "
          f"({100. * correct / total:.0f}%)\n")


def main():
    parser = argparse.ArgumentParser(description="MindSpore MNIST example")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--test-batch-size", type=int, default=250)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7, help="factor of the rate per epoch")
    parser.add_argument("--dry-run", action="store_true", help="quickly check a single pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--save-model", action="store_true")
    parser.add_argument("--init", metavar="FILE", help="weights to start from")
    parser.add_argument("--save-init", metavar="FILE", help="where to write the first weights")
    args = parser.parse_args()
    ms.set_device("CPU")
    ms.set_seed(args.seed)

    train_data, test_data = make_digits(5000, seed=1), make_digits(500, seed=2)
    train_set = NumpySlicesDataset(train_data, shuffle=False).batch(args.batch_size)
    test_set = NumpySlicesDataset(test_data, shuffle=False).batch(args.test_batch_size)

    model = Net()
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init))
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)

    steps = train_set.get_dataset_size()
    rates = [args.lr * args.gamma ** (i // steps) for i in range(args.epochs * steps)]
    optimizer = nn.Adadelta(model.trainable_params(), rates)
    train_step = make_train_step(model, optimizer)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_step, train_set, len(train_data[0]), epoch)
        test(model, test_set)

    if args.save_model:
        ms.save_checkpoint(model, "mnist_cnn.ckpt")


if __name__ == "__main__":
    main()
