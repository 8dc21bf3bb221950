"""Train a small ResNet on CIFAR-like images with MindSpore; nn.SGD has torch's own rule."""
import argparse
import math
import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


def conv(in_planes, planes, kernel_size, stride=1):
    return nn.Conv2d(in_planes, planes, kernel_size, stride, pad_mode="pad",
                     padding=kernel_size // 2)


class BasicBlock(nn.Cell):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = conv(in_planes, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes, momentum=0.9)
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes, momentum=0.9)
        self.relu = nn.ReLU()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.SequentialCell(
                conv(in_planes, planes, 1, stride), nn.BatchNorm2d(planes, momentum=0.9))
        else:
            self.shortcut = nn.Identity()

    def construct(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.shortcut(x))


class ResNet(nn.Cell):
    def __init__(self, num_blocks, num_classes=10):
        super().__init__()
        self.conv1 = conv(3, 16, 3)
        self.bn1 = nn.BatchNorm2d(16, momentum=0.9)
        self.relu = nn.ReLU()
        self.layer1 = self._make_layer(16, 16, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(16, 32, num_blocks[1], stride=2)
        self.layer3 = self._make_layer(32, 64, num_blocks[2], stride=2)
        self.layer4 = self._make_layer(64, 128, num_blocks[3], stride=2)
        self.linear = nn.Dense(128, num_classes)

    def _make_layer(self, in_planes, planes, num_blocks, stride):
        blocks = [BasicBlock(in_planes, planes, stride)]
        blocks += [BasicBlock(planes, planes) for _ in range(num_blocks - 1)]
        return nn.SequentialCell(blocks)

    def construct(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.layer4(self.layer3(self.layer2(self.layer1(out))))
        return self.linear(out.mean((2, 3)))


def make_images(n, seed):
    """Ten kinds of coloured waves with a random phase, and noise."""
    kinds = np.random.RandomState(1234)
    freqs = kinds.uniform(-0.6, 0.6, size=(10, 2))
    colours = kinds.uniform(-1, 1, size=(10, 3))
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, size=n)
    y, x = np.mgrid[0:32, 0:32]
    phase = rng.uniform(0, 2*np.pi, size=(n, 1, 1))
    waves = np.sin(freqs[labels, 0, None, None]*y + freqs[labels, 1, None, None]*x + phase)
    images = waves[:, None] * colours[labels][:, :, None, None]
    images += rng.normal(0, 2.0, size=images.shape)
    return images.astype(np.float32), labels.astype(np.int32)


def make_train_step(net, optimizer):
    def forward_fn(inputs, targets):
        outputs = net(inputs)
        return ops.cross_entropy(outputs, targets), outputs

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    @ms.jit
    def train_step(inputs, targets):
        (loss, outputs), grads = grad_fn(inputs, targets)
        optimizer(grads)
        return loss, outputs

    return train_step


def count_correct(outputs, targets):
    return int((outputs.asnumpy().argmax(1) == targets.asnumpy()).sum())


def train(net, train_step, trainset, epoch):
    print(f"\nEpoch: {epoch}")
    net.set_train()
    train_loss, correct, total = 0.0, 0, 0
    batches = trainset.get_dataset_size()
    for batch_idx, (inputs, targets) in enumerate(trainset.create_tuple_iterator(num_epochs=1)):
        loss, outputs = train_step(inputs, targets)
        train_loss += loss.item()
        total += len(targets)
        correct += count_correct(outputs, targets)
        print(f"[{batch_idx + 1}/{batches}] loss {train_loss / (batch_idx + 1):.6f} | "
              f"Acc: {100. * correct / total:.3f}% ({correct}/{total})")


def test(net, testset):
    net.set_train(False)
    test_loss, correct, total = 0.0, 0, 0
    for inputs, targets in testset.create_tuple_iterator(num_epochs=1):
        outputs = net(inputs)
        test_loss += ops.cross_entropy(outputs, targets).item()
        total += len(targets)
        correct += count_correct(outputs, targets)
    acc = 100. * correct / total
    print(f"Test loss {test_loss / testset.get_dataset_size():.6f} | "
          f"Acc: {acc:.3f}% ({correct}/{total})")
    return acc


def main():
    parser = argparse.ArgumentParser(description="MindSpore CIFAR10 training")
    parser.add_argument("--lr", default=0.1, type=float, help="learning rate")
    parser.add_argument("--resume", "-r", action="store_true", help="resume from checkpoint")
    parser.add_argument("--epochs", default=2, type=int, help="epochs to train")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the training images")
    parser.add_argument("--init", help="weights to start from")
    parser.add_argument("--save-init", help="where to write the first weights")
    args = parser.parse_args()
    ms.set_device("CPU")

    print("==> Preparing data..")
    trainset = NumpySlicesDataset(make_images(5000, seed=0), shuffle=args.shuffle).batch(64)
    testset = NumpySlicesDataset(make_images(500, seed=1), shuffle=False).batch(100)

    print("==> Building model..")
    net = ResNet([1, 1, 1, 1])
    best_acc, start_epoch = 0, 0
    if args.init:
        ms.load_param_into_net(net, ms.load_checkpoint(args.init))
    if args.save_init:
        ms.save_checkpoint(net, args.save_init)
    if args.resume:
        print("==> Resuming from checkpoint..")
        checkpoint = ms.load_checkpoint("checkpoint/ckpt.ckpt")
        best_acc = float(checkpoint.pop("acc"))
        start_epoch = int(checkpoint.pop("epoch"))
        ms.load_param_into_net(net, checkpoint)

    # As torch: the rate falls once an epoch, and the decay is on every parameter.
    steps = trainset.get_dataset_size()
    rates = [args.lr * (1 + math.cos(math.pi * (i // steps) / args.epochs)) / 2
             for i in range(args.epochs * steps)]
    params = [{"params": net.trainable_params(), "weight_decay": 5e-4}]
    optimizer = nn.SGD(params, rates, momentum=0.9)
    train_step = make_train_step(net, optimizer)

    for epoch in range(start_epoch, start_epoch + args.epochs):
        train(net, train_step, trainset, epoch)
        acc = test(net, testset)
        if acc > best_acc:
            print("Saving..")
            os.makedirs("checkpoint", exist_ok=True)
            ms.save_checkpoint(net, "checkpoint/ckpt.ckpt",
                               append_dict={"acc": acc, "epoch": epoch})
            best_acc = acc


if __name__ == "__main__":
    main()
