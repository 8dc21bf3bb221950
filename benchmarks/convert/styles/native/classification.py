"""Train an image classifier with MindSpore; nn.Momentum follows the rule of torch's SGD exactly."""

import argparse
import math
import os
import shutil
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal

parser = argparse.ArgumentParser(description="Image classification")
parser.add_argument("-a", "--width", default=16, type=int, help="channels of the first stage")
parser.add_argument("--classes", default=10, type=int)
parser.add_argument("--size", default=32, type=int, help="height and width of an image")
parser.add_argument("--samples", default=512, type=int, help="images of the synthetic set")
parser.add_argument("--epochs", default=2, type=int, metavar="N")
parser.add_argument("-b", "--batch-size", default=32, type=int, metavar="N")
parser.add_argument("--lr", "--learning-rate", default=0.1, type=float, dest="lr")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
parser.add_argument("--schedule", default="step", choices=("step", "cosine"))
parser.add_argument("--warmup", default=1, type=int, help="epochs of rising rate (cosine)")
parser.add_argument("--label-smoothing", default=0.0, type=float)
parser.add_argument("-p", "--print-freq", default=1, type=int, metavar="N")
parser.add_argument("--no-shuffle", action="store_true", help="the same order in every epoch")
parser.add_argument("--init", default="", metavar="PATH", help="weights to start from")
parser.add_argument("--save-init", default="", metavar="PATH", help="keep the first weights")
parser.add_argument("--folder", default=".", help="where checkpoints go")
parser.add_argument("--seed", default=None, type=int)
parser.add_argument("--amp", action="store_true", help="mixed precision (not on the CPU)")


def make_patterns(count, classes, size, seed):
    """Images of a few noisy patterns, one for each class, normalized."""
    generator = np.random.RandomState(seed)
    targets = generator.randint(0, classes, count)
    patterns = np.random.RandomState(1).uniform(0, 255, (classes, size, size, 3))
    noise = generator.normal(0, 60, (count, size, size, 3))
    images = np.clip(patterns[targets] + noise, 0, 255).astype(np.uint8)
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    images = (images.astype(np.float32) / np.float32(255) - mean) / std
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)), targets.astype(np.int32)


def batches(data, batch_size, shuffle=False, drop_last=False):
    images, targets = data
    count = len(targets)
    order = np.random.permutation(count) if shuffle else np.arange(count)
    for start in range(0, count - batch_size + 1 if drop_last else count, batch_size):
        index = order[start : start + batch_size]
        yield ms.Tensor(images[index]), ms.Tensor(targets[index])


def conv(inplanes, planes, kernel_size, stride=1):
    return nn.Conv2d(
        inplanes,
        planes,
        kernel_size,
        stride,
        pad_mode="pad",
        padding=kernel_size // 2,
        weight_init=HeNormal(mode="fan_out", nonlinearity="relu"),
    )


class BasicBlock(nn.Cell):
    """Two convolutions and a way around them."""

    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = conv(inplanes, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes, momentum=0.9)
        self.relu = nn.ReLU()
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes, momentum=0.9)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.SequentialCell(
                conv(inplanes, planes, 1, stride), nn.BatchNorm2d(planes, momentum=0.9)
            )

    def construct(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + identity)


class SmallResNet(nn.Cell):
    """Three stages of residual blocks."""

    def __init__(self, width=16, classes=10):
        super().__init__()
        self.stem = nn.SequentialCell(
            conv(3, width, 3), nn.BatchNorm2d(width, momentum=0.9), nn.ReLU()
        )
        self.layer1 = BasicBlock(width, width)
        self.layer2 = BasicBlock(width, 2 * width, stride=2)
        self.layer3 = BasicBlock(2 * width, 4 * width, stride=2)
        self.fc = nn.Dense(4 * width, classes)

    def construct(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(x.mean((2, 3)))


def learning_rates(args, steps_per_epoch):
    """The rate of each step; it changes with the epochs only."""
    rates = []
    for epoch in range(args.epochs):
        if args.schedule == "step":
            factor = 0.1**epoch
        elif epoch < args.warmup:
            factor = 0.1 + 0.9 * epoch / args.warmup
        else:
            share = (epoch - args.warmup) / max(1, args.epochs - args.warmup)
            factor = (1 + math.cos(math.pi * share)) / 2
        rates += [args.lr * factor] * steps_per_epoch
    return rates


def make_steps(model, optimizer, label_smoothing):
    """The compiled steps; both give loss, Acc@1 and Acc@5 in one tensor, which is read at once."""

    def forward_fn(images, target):
        output = model(images)
        return ops.cross_entropy(output, target, label_smoothing=label_smoothing), output

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    def measured(loss, output, target):
        _, pred = ops.topk(output, 5)
        hits = (pred == target.expand_dims(1)).astype(ms.float32) * (100 / target.shape[0])
        return ops.stack((loss, hits[:, 0].sum(), hits.sum()))

    @ms.jit
    def train_step(images, target):
        (loss, output), grads = grad_fn(images, target)
        optimizer(grads)
        return measured(loss, output, target)

    def eval_step(images, target):
        loss, output = forward_fn(images, target)
        return measured(loss, output, target)

    return train_step, eval_step


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt):
        self.name, self.fmt = name, fmt
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = float(val)
        self.sum += self.val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return f"{self.name} {self.val:{self.fmt}} ({self.avg:{self.fmt}})"


def make_meters():
    return AverageMeter("Loss", ".6e"), AverageMeter("Acc@1", "6.2f"), AverageMeter("Acc@5", "6.2f")


def train(model, train_step, data, epoch, args):
    batch_time, data_time = AverageMeter("Time", "6.3f"), AverageMeter("Data", "6.3f")
    meters = make_meters()
    steps = len(data[1]) // args.batch_size
    model.set_train()
    end = time.time()
    for i, (images, target) in enumerate(
        batches(data, args.batch_size, not args.no_shuffle, drop_last=True)
    ):
        data_time.update(time.time() - end)
        for meter, value in zip(meters, train_step(images, target).asnumpy()):
            meter.update(value, len(target))
        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            number = f"[{i + 1:{len(str(steps))}d}/{steps}]"
            print(f"Epoch: [{epoch}]{number}", batch_time, data_time, *meters, sep="\t")


def validate(model, eval_step, data, args):
    meters = make_meters()
    model.set_train(False)
    for images, target in batches(data, args.batch_size):
        for meter, value in zip(meters, eval_step(images, target).asnumpy()):
            meter.update(value, len(target))
    print(" *", *(f"{meter.name} {meter.avg:.4f}" for meter in meters))
    return meters[1].avg


def main():
    args = parser.parse_args()
    if args.seed is not None:
        np.random.seed(args.seed)
        ms.set_seed(args.seed)
    model = SmallResNet(args.width, args.classes)
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)

    train_data = make_patterns(args.samples, args.classes, args.size, seed=2)
    val_data = make_patterns(args.samples // 4, args.classes, args.size, seed=3)

    # no weight decay for biases and for the scale and shift of the norms
    params = model.trainable_params()
    optimizer = nn.Momentum(
        [
            {"params": [p for p in params if p.ndim > 1], "weight_decay": args.weight_decay},
            {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
        ],
        learning_rate=learning_rates(args, args.samples // args.batch_size),
        momentum=args.momentum,
    )
    train_step, eval_step = make_steps(model, optimizer, args.label_smoothing)

    best_acc1 = 0.0
    for epoch in range(args.epochs):
        train(model, train_step, train_data, epoch, args)
        acc1 = validate(model, eval_step, val_data, args)
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        filename = os.path.join(args.folder, "checkpoint.ckpt")
        extra = {"epoch": epoch + 1, "best_acc1": best_acc1}
        # an optimizer holds the parameters that it trains, its moments and its step
        saved = [*model.get_parameters(), *optimizer.moments, optimizer.global_step]
        saved = [{"name": p.name, "data": p} for p in saved]
        ms.save_checkpoint(saved, filename, append_dict=extra)
        if is_best:
            shutil.copyfile(filename, os.path.join(args.folder, "model_best.ckpt"))


if __name__ == "__main__":
    main()
