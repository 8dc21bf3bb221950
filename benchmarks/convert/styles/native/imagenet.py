"""Train a small ResNet in MindSpore; nn.Momentum follows the rule of torch's SGD exactly."""

import argparse
import datetime
import math
import os
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal


def conv(in_planes, out_planes, kernel_size, stride=1):
    return nn.Conv2d(
        in_planes,
        out_planes,
        kernel_size,
        stride,
        pad_mode="pad",
        padding=kernel_size // 2,
        weight_init=HeNormal(mode="fan_out", nonlinearity="relu"),
    )


class BasicBlock(nn.Cell):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = conv(inplanes, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes, momentum=0.9)
        self.relu = nn.ReLU()
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes, momentum=0.9)
        self.downsample = downsample

    def construct(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        return self.relu(out + identity)


class ResNet(nn.Cell):
    def __init__(self, block, layers, width=64, num_classes=1000):
        super().__init__()
        self.inplanes = width
        self.conv1 = conv(3, width, 7, 2)
        self.bn1 = nn.BatchNorm2d(width, momentum=0.9)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="pad", padding=1)
        self.layer1 = self._make_layer(block, width, layers[0])
        self.layer2 = self._make_layer(block, width * 2, layers[1], stride=2)
        self.layer3 = self._make_layer(block, width * 4, layers[2], stride=2)
        self.layer4 = self._make_layer(block, width * 8, layers[3], stride=2)
        self.fc = nn.Dense(width * 8 * block.expansion, num_classes)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.SequentialCell(
                conv(self.inplanes, planes * block.expansion, 1, stride),
                nn.BatchNorm2d(planes * block.expansion, momentum=0.9),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.SequentialCell(*layers)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def synthetic_images(num_samples, num_classes, size, seed):
    """Each class is a sum of smooth waves in the three channels, seen through noise."""
    rng = np.random.RandomState(1234)
    grid = np.linspace(0, 2 * np.pi, size, endpoint=False)
    freq = rng.randint(1, 4, (num_classes, 3, 2, 1, 1))
    phase = rng.uniform(0, 2 * np.pi, (num_classes, 3, 1, 1))
    waves = np.sin(freq[:, :, 0] * grid[:, None] + freq[:, :, 1] * grid + phase)
    rng = np.random.RandomState(seed)
    targets = rng.randint(0, num_classes, num_samples)
    images = 0.15 * waves[targets] + rng.randn(num_samples, 3, size, size)
    return images.astype(np.float32), targets.astype(np.int32)


def batches(data, batch_size, shuffle=False):
    images, targets = data
    order = np.random.permutation(len(targets)) if shuffle else np.arange(len(targets))
    for start in range(0, len(targets), batch_size):
        index = order[start : start + batch_size]
        yield images[index], targets[index]


def topk_correct(output, target, topk=(1, 5)):
    """The number of samples whose target is among the k top predictions, for each k."""
    order = np.argsort(-output, axis=1)
    return np.array([(order[:, :k] == target[:, None]).sum() for k in topk])


def decay_groups(model, weight_decay, norm_weight_decay):
    params = model.trainable_params()
    if norm_weight_decay is None:
        return [{"params": params, "weight_decay": weight_decay}]
    norm = [p for p in params if p.name.endswith(("gamma", "beta"))]
    other = [p for p in params if not p.name.endswith(("gamma", "beta"))]
    return [
        {"params": other, "weight_decay": weight_decay},
        {"params": norm, "weight_decay": norm_weight_decay},
    ]


def learning_rates(args, steps_per_epoch):
    """A linear warm-up and a cosine, constant within an epoch, as a list over all steps."""
    rates = []
    for epoch in range(args.epochs):
        if epoch < args.lr_warmup_epochs:
            share = epoch / args.lr_warmup_epochs
            lr = args.lr * (args.lr_warmup_decay + (1 - args.lr_warmup_decay) * share)
        else:
            t = (epoch - args.lr_warmup_epochs) / (args.epochs - args.lr_warmup_epochs)
            lr = args.lr_min + (args.lr - args.lr_min) * (1 + math.cos(math.pi * t)) / 2
        rates += [lr] * steps_per_epoch
    return rates


def update_average(model_ema, model, decay):
    for average, param in zip(model_ema.get_parameters(), model.get_parameters()):
        ops.assign(average, decay * average + (1 - decay) * param)


def train_one_epoch(model, train_step, data, epoch, rates, args, model_ema, ema_decay):
    model.set_train()
    steps = math.ceil(len(data[1]) / args.batch_size)
    correct, seen = np.zeros(2), 0
    start_time = time.time()
    for i, (image, target) in enumerate(batches(data, args.batch_size, args.shuffle)):
        step_time = time.time()
        loss, output = train_step(ms.Tensor(image), ms.Tensor(target))
        if model_ema and i % args.model_ema_steps == 0:
            # Keep copying weights during warmup period
            first = epoch == args.lr_warmup_epochs and i == 0
            update_average(
                model_ema, model, 0.0 if first or epoch < args.lr_warmup_epochs else ema_decay
            )
        loss = float(loss.asnumpy())
        hits = topk_correct(output.asnumpy(), target)
        correct += hits
        seen += len(target)
        if i % args.print_freq == 0:
            (acc1, acc5), (avg1, avg5) = 100 * hits / len(target), 100 * correct / seen
            print(
                f"Epoch: [{epoch}]  [{i:{len(str(steps))}d}/{steps}]"
                f"  lr {rates[epoch * steps]:.6f}"
                f"  img/s {len(target) / (time.time() - step_time):.1f}  loss {loss:.6f}"
                f"  acc1 {acc1:.4f} ({avg1:.4f})  acc5 {acc5:.4f} ({avg5:.4f})"
            )
    total_time = datetime.timedelta(seconds=int(time.time() - start_time))
    print(f"Epoch: [{epoch}] Total time: {total_time}")


def evaluate(model, data, args, log_suffix=""):
    model.set_train(False)
    correct = np.zeros(2)
    for i, (image, target) in enumerate(batches(data, args.batch_size)):
        output = model(ms.Tensor(image))
        loss = ops.cross_entropy(output, ms.Tensor(target), label_smoothing=args.label_smoothing)
        correct += topk_correct(output.asnumpy(), target)
        if i % 100 == 0:
            print(f"Test: {log_suffix}  [{i}]  loss {float(loss.asnumpy()):.4f}")
    acc1, acc5 = 100 * correct / len(data[1])
    print(f"Test: {log_suffix} Acc@1 {acc1:.3f} Acc@5 {acc5:.3f}")
    return acc1


def main(args):
    print(args)
    ms.set_seed(args.seed)
    data = synthetic_images(args.train_size, args.num_classes, args.image_size, seed=0)
    data_test = synthetic_images(args.val_size, args.num_classes, args.image_size, seed=1)
    steps_per_epoch = math.ceil(args.train_size / args.batch_size)

    print("Creating model")
    model = ResNet(BasicBlock, args.layers, args.width, args.num_classes)
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)

    rates = learning_rates(args, steps_per_epoch)
    optimizer = nn.Momentum(
        decay_groups(model, args.weight_decay, args.norm_weight_decay),
        learning_rate=rates,
        momentum=args.momentum,
        use_nesterov="nesterov" in args.opt.lower(),
    )

    def forward_fn(image, target):
        output = model(image)
        loss = ops.cross_entropy(output, target, label_smoothing=args.label_smoothing)
        return loss, output

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    @ms.jit
    def train_step(image, target):
        (loss, output), grads = grad_fn(image, target)
        if args.clip_grad_norm is not None:
            grads = ops.clip_by_global_norm(grads, args.clip_grad_norm)
        optimizer(grads)
        return loss, output

    model_ema, ema_decay = None, 0.0
    if args.model_ema:
        # Decay adjustment that aims to keep the decay independent of other hyper-parameters
        adjust = args.batch_size * args.model_ema_steps / args.epochs
        ema_decay = 1.0 - min(1.0, (1.0 - args.model_ema_decay) * adjust)
        model_ema = ResNet(BasicBlock, args.layers, args.width, args.num_classes)

    print("Start training")
    start_time = time.time()
    for epoch in range(args.epochs):
        train_one_epoch(model, train_step, data, epoch, rates, args, model_ema, ema_decay)
        evaluate(model, data_test, args)
        if model_ema:
            evaluate(model_ema, data_test, args, log_suffix="EMA")
        if args.output_dir:
            extra = {"epoch": epoch}
            # an optimizer holds the parameters that it trains, its moments and its step
            for name, cell in (("model", model), ("optimizer", optimizer), ("ema", model_ema)):
                if cell is not None:
                    path = os.path.join(args.output_dir, f"{name}_{epoch}.ckpt")
                    ms.save_checkpoint(cell, path, append_dict=extra)
    total_time = time.time() - start_time
    print(f"Training time {datetime.timedelta(seconds=int(total_time))}")


def get_args_parser(add_help=True):
    parser = argparse.ArgumentParser(description="Classification Training", add_help=add_help)
    parser.add_argument("-b", "--batch-size", default=32, type=int, help="images per batch")
    parser.add_argument("--epochs", default=4, type=int, metavar="N", help="number of epochs")
    parser.add_argument("--train-size", default=1600, type=int, help="number of train images")
    parser.add_argument("--val-size", default=320, type=int, help="number of test images")
    parser.add_argument("--image-size", default=64, type=int, help="side of an image")
    parser.add_argument("--num-classes", default=20, type=int, help="number of classes")
    parser.add_argument("--layers", default=[2, 2, 2, 2], type=int, nargs=4, help="blocks")
    parser.add_argument("--width", default=24, type=int, help="channels of the first layer")
    parser.add_argument("--opt", default="sgd", type=str, help="sgd or sgd_nesterov")
    parser.add_argument("--lr", default=0.02, type=float, help="initial learning rate")
    parser.add_argument("--momentum", default=0.9, type=float, metavar="M", help="momentum")
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--norm-weight-decay", default=None, type=float)
    parser.add_argument("--label-smoothing", default=0.1, type=float)
    parser.add_argument("--lr-warmup-epochs", default=1, type=int)
    parser.add_argument("--lr-warmup-decay", default=0.1, type=float)
    parser.add_argument("--lr-min", default=0.0, type=float)
    parser.add_argument("--clip-grad-norm", default=None, type=float)
    parser.add_argument("--model-ema", default=True, action=argparse.BooleanOptionalAction)
    parser.add_argument("--model-ema-steps", default=8, type=int)
    parser.add_argument("--model-ema-decay", default=0.998, type=float)
    parser.add_argument("--shuffle", action="store_true", help="random order of images")
    parser.add_argument("--print-freq", default=5, type=int, help="print frequency")
    parser.add_argument("--seed", default=0, type=int, help="seed of the first weights")
    parser.add_argument("--output-dir", default="", type=str, help="path to save outputs")
    parser.add_argument("--init", default="", type=str, help="weights to start from")
    parser.add_argument("--save-init", default="", type=str, help="save the first weights")
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
