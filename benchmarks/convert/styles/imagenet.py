"""Train a small ResNet, in the form of torchvision's classification reference."""

import argparse
import datetime
import os
import time
from collections import defaultdict, deque

import numpy as np
import torch
from torch import nn


class SmoothedValue:
    """Track a series of values and provide access to smoothed values over a window."""

    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0
        self.fmt = fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    @property
    def value(self):
        return self.deque[-1]

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg, value=self.value)


class MetricLogger:
    def __init__(self, delimiter="\t"):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def __getattr__(self, attr):
        if attr in self.meters:
            return self.meters[attr]
        if attr in self.__dict__:
            return self.__dict__[attr]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attr}'")

    def __str__(self):
        return self.delimiter.join(f"{name} {meter}" for name, meter in self.meters.items())

    def add_meter(self, name, meter):
        self.meters[name] = meter

    def log_every(self, iterable, print_freq, header=""):
        start_time = time.time()
        space = len(str(len(iterable)))
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0:
                print(self.delimiter.join([header, f"[{i:{space}d}/{len(iterable)}]", str(self)]))
        total_time = datetime.timedelta(seconds=int(time.time() - start_time))
        print(f"{header} Total time: {total_time}")


class ExponentialMovingAverage(torch.optim.swa_utils.AveragedModel):
    """Maintains moving averages of model parameters using an exponential decay."""

    def __init__(self, model, decay, device="cpu"):
        def ema_avg(avg_model_param, model_param, num_averaged):
            return decay * avg_model_param + (1 - decay) * model_param

        super().__init__(model, device, ema_avg, use_buffers=True)


def accuracy(output, target, topk=(1,)):
    """Computes the accuracy over the k top predictions for the specified values of k."""
    with torch.inference_mode():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target[None])

        res = []
        for k in topk:
            correct_k = correct[:k].flatten().sum(dtype=torch.float32)
            res.append(correct_k * (100.0 / batch_size))
        return res


def set_weight_decay(model, weight_decay, norm_weight_decay=None):
    norm_classes = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)
    params = {"other": [], "norm": []}
    params_weight_decay = {"other": weight_decay, "norm": norm_weight_decay}

    def _add_params(module):
        for p in module.parameters(recurse=False):
            if not p.requires_grad:
                continue
            if norm_weight_decay is not None and isinstance(module, norm_classes):
                params["norm"].append(p)
            else:
                params["other"].append(p)
        for child_module in module.children():
            _add_params(child_module)

    _add_params(model)
    param_groups = []
    for key, group in params.items():
        if len(group) > 0:
            param_groups.append({"params": group, "weight_decay": params_weight_decay[key]})
    return param_groups


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, 3, stride=stride, padding=1, bias=False)


def conv1x1(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x

        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)

        out = self.conv2(out)
        out = self.bn2(out)

        if self.downsample is not None:
            identity = self.downsample(x)

        out += identity
        out = self.relu(out)

        return out


class ResNet(nn.Module):
    def __init__(self, block, layers, width=64, num_classes=1000, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        self._norm_layer = norm_layer

        self.inplanes = width
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, width, layers[0])
        self.layer2 = self._make_layer(block, width * 2, layers[1], stride=2)
        self.layer3 = self._make_layer(block, width * 4, layers[2], stride=2)
        self.layer4 = self._make_layer(block, width * 8, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 8 * block.expansion, num_classes)

        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, blocks, stride=1):
        norm_layer = self._norm_layer
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride),
                norm_layer(planes * block.expansion),
            )

        layers = []
        layers.append(block(self.inplanes, planes, stride, downsample, norm_layer))
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes, norm_layer=norm_layer))

        return nn.Sequential(*layers)

    def _forward_impl(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)

        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)

        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.fc(x)

        return x

    def forward(self, x):
        return self._forward_impl(x)


class SyntheticImages(torch.utils.data.Dataset):
    """Each class is a sum of smooth waves in the three channels, seen through noise."""

    def __init__(self, num_samples, num_classes, size, seed):
        rng = np.random.RandomState(1234)
        grid = np.linspace(0, 2 * np.pi, size, endpoint=False)
        freq = rng.randint(1, 4, (num_classes, 3, 2, 1, 1))
        phase = rng.uniform(0, 2 * np.pi, (num_classes, 3, 1, 1))
        waves = np.sin(freq[:, :, 0] * grid[:, None] + freq[:, :, 1] * grid + phase)
        rng = np.random.RandomState(seed)
        self.targets = rng.randint(0, num_classes, num_samples)
        images = 0.15 * waves[self.targets] + rng.randn(num_samples, 3, size, size)
        self.images = images.astype(np.float32)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), int(self.targets[index])

    def __len__(self):
        return len(self.targets)


def train_one_epoch(
    model, criterion, optimizer, data_loader, device, epoch, args, model_ema=None, scaler=None
):
    model.train()
    metric_logger = MetricLogger(delimiter="  ")
    metric_logger.add_meter("lr", SmoothedValue(window_size=1, fmt="{value:.6f}"))
    metric_logger.add_meter("img/s", SmoothedValue(window_size=10, fmt="{value:.1f}"))
    metric_logger.add_meter("loss", SmoothedValue(window_size=1, fmt="{value:.6f}"))

    header = f"Epoch: [{epoch}]"
    for i, (image, target) in enumerate(
        metric_logger.log_every(data_loader, args.print_freq, header)
    ):
        start_time = time.time()
        image, target = image.to(device), target.to(device)
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            output = model(image)
            loss = criterion(output, target)

        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            if args.clip_grad_norm is not None:
                # we should unscale the gradients of optimizer's assigned params if we clip
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            if args.clip_grad_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
            optimizer.step()

        if model_ema and i % args.model_ema_steps == 0:
            model_ema.update_parameters(model)
            if epoch < args.lr_warmup_epochs:
                # Reset ema buffer to keep copying weights during warmup period
                model_ema.n_averaged.fill_(0)

        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        batch_size = image.shape[0]
        metric_logger.update(loss=loss.item(), lr=optimizer.param_groups[0]["lr"])
        metric_logger.meters["acc1"].update(acc1.item(), n=batch_size)
        metric_logger.meters["acc5"].update(acc5.item(), n=batch_size)
        metric_logger.meters["img/s"].update(batch_size / (time.time() - start_time))


def evaluate(model, criterion, data_loader, device, print_freq=100, log_suffix=""):
    model.eval()
    metric_logger = MetricLogger(delimiter="  ")
    header = f"Test: {log_suffix}"

    with torch.inference_mode():
        for image, target in metric_logger.log_every(data_loader, print_freq, header):
            image = image.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            output = model(image)
            loss = criterion(output, target)

            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            batch_size = image.shape[0]
            metric_logger.update(loss=loss.item())
            metric_logger.meters["acc1"].update(acc1.item(), n=batch_size)
            metric_logger.meters["acc5"].update(acc5.item(), n=batch_size)

    acc1, acc5 = metric_logger.acc1.global_avg, metric_logger.acc5.global_avg
    print(f"{header} Acc@1 {acc1:.3f} Acc@5 {acc5:.3f}")
    return metric_logger.acc1.global_avg


def load_data(args):
    dataset = SyntheticImages(args.train_size, args.num_classes, args.image_size, seed=0)
    dataset_test = SyntheticImages(args.val_size, args.num_classes, args.image_size, seed=1)
    if args.shuffle:
        train_sampler = torch.utils.data.RandomSampler(dataset)
    else:
        train_sampler = torch.utils.data.SequentialSampler(dataset)
    test_sampler = torch.utils.data.SequentialSampler(dataset_test)
    return dataset, dataset_test, train_sampler, test_sampler


def main(args):
    print(args)
    device = torch.device(args.device)
    torch.manual_seed(args.seed)

    dataset, dataset_test, train_sampler, test_sampler = load_data(args)
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.batch_size, sampler=train_sampler, num_workers=args.workers
    )
    data_loader_test = torch.utils.data.DataLoader(
        dataset_test, batch_size=args.batch_size, sampler=test_sampler, num_workers=args.workers
    )

    print("Creating model")
    model = ResNet(BasicBlock, args.layers, width=args.width, num_classes=args.num_classes)
    model.to(device)
    if args.init:
        model.load_state_dict(torch.load(args.init, map_location="cpu"))
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)

    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)

    parameters = set_weight_decay(
        model, args.weight_decay, norm_weight_decay=args.norm_weight_decay
    )
    opt_name = args.opt.lower()
    if opt_name.startswith("sgd"):
        optimizer = torch.optim.SGD(
            parameters,
            lr=args.lr,
            momentum=args.momentum,
            weight_decay=args.weight_decay,
            nesterov="nesterov" in opt_name,
        )
    else:
        raise RuntimeError(f"Invalid optimizer {args.opt}. Only SGD is supported.")

    scaler = torch.cuda.amp.GradScaler() if args.amp else None

    main_lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=args.epochs - args.lr_warmup_epochs, eta_min=args.lr_min
    )
    if args.lr_warmup_epochs > 0:
        warmup_lr_scheduler = torch.optim.lr_scheduler.LinearLR(
            optimizer, start_factor=args.lr_warmup_decay, total_iters=args.lr_warmup_epochs
        )
        lr_scheduler = torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            schedulers=[warmup_lr_scheduler, main_lr_scheduler],
            milestones=[args.lr_warmup_epochs],
        )
    else:
        lr_scheduler = main_lr_scheduler

    model_ema = None
    if args.model_ema:
        # Decay adjustment that aims to keep the decay independent of other hyper-parameters
        adjust = args.batch_size * args.model_ema_steps / args.epochs
        alpha = 1.0 - args.model_ema_decay
        alpha = min(1.0, alpha * adjust)
        model_ema = ExponentialMovingAverage(model, device=device, decay=1.0 - alpha)

    print("Start training")
    start_time = time.time()
    for epoch in range(args.epochs):
        train_one_epoch(
            model, criterion, optimizer, data_loader, device, epoch, args, model_ema, scaler
        )
        lr_scheduler.step()
        evaluate(model, criterion, data_loader_test, device=device)
        if model_ema:
            evaluate(model_ema, criterion, data_loader_test, device=device, log_suffix="EMA")
        if args.output_dir:
            checkpoint = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "lr_scheduler": lr_scheduler.state_dict(),
                "epoch": epoch,
                "args": args,
            }
            if model_ema:
                checkpoint["model_ema"] = model_ema.state_dict()
            if scaler:
                checkpoint["scaler"] = scaler.state_dict()
            torch.save(checkpoint, os.path.join(args.output_dir, f"model_{epoch}.pth"))
            torch.save(checkpoint, os.path.join(args.output_dir, "checkpoint.pth"))

    total_time = time.time() - start_time
    print(f"Training time {datetime.timedelta(seconds=int(total_time))}")


def get_args_parser(add_help=True):
    parser = argparse.ArgumentParser(description="Classification Training", add_help=add_help)
    parser.add_argument("--device", default="cpu", type=str, help="device (cuda or cpu)")
    parser.add_argument("-b", "--batch-size", default=32, type=int, help="images per batch")
    parser.add_argument("--epochs", default=4, type=int, metavar="N", help="number of epochs")
    parser.add_argument("-j", "--workers", default=0, type=int, metavar="N")
    parser.add_argument("--train-size", default=1600, type=int, help="number of train images")
    parser.add_argument("--val-size", default=320, type=int, help="number of test images")
    parser.add_argument("--image-size", default=64, type=int, help="side of an image")
    parser.add_argument("--num-classes", default=20, type=int, help="number of classes")
    parser.add_argument("--layers", default=[2, 2, 2, 2], type=int, nargs=4, help="blocks")
    parser.add_argument("--width", default=24, type=int, help="channels of the first layer")
    parser.add_argument("--opt", default="sgd", type=str, help="optimizer")
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
    parser.add_argument("--amp", action="store_true", help="Use mixed precision training")
    parser.add_argument("--shuffle", action="store_true", help="random order of images")
    parser.add_argument("--print-freq", default=5, type=int, help="print frequency")
    parser.add_argument("--seed", default=0, type=int, help="seed of the first weights")
    parser.add_argument("--output-dir", default="", type=str, help="path to save outputs")
    parser.add_argument("--init", default="", type=str, help="weights to start from")
    parser.add_argument("--save-init", default="", type=str, help="save the first weights")
    return parser


if __name__ == "__main__":
    args = get_args_parser().parse_args()
    main(args)
