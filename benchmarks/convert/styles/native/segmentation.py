"""Train a U-Net to segment discs and squares; an own AdamW, as MindSpore's corrects no bias."""

import argparse
import math

import mindspore as ms
import numpy as np
from mindspore import nn, ops


def parse_args():
    parser = argparse.ArgumentParser(description="U-Net segmentation")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=3, help="background, discs and squares")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("-b", "--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dice", type=float, default=0.5, help="weight of the Dice loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--init", default="", help="weights to start from")
    parser.add_argument("--save-init", default="", help="keep the first weights")
    parser.add_argument("--save", default="", help="where to keep the best weights")
    return parser.parse_args()


def make_samples(count, size, seed):
    """Noisy images with a disc and a square each, and the class of every pixel."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    images = rng.random((count, 3, size, size), dtype=np.float32) * 0.3
    masks = np.zeros((count, size, size), np.int32)
    for n in range(count):
        y, x, v, u = rng.random(4) * size
        radius = size / 5
        disc = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
        square = np.maximum(abs(rows - v), abs(columns - u)) < radius / 2
        masks[n][disc] = 1
        masks[n][square] = 2
        images[n, 0][disc] += 0.6
        images[n, 1][square] += 0.6
    return images, masks


def batches(images, masks, batch_size):
    for start in range(0, len(images), batch_size):
        stop = start + batch_size
        yield ms.Tensor(images[start:stop]), ms.Tensor(masks[start:stop])


class DoubleConv(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.block = nn.SequentialCell(
            nn.Conv2d(in_channels, out_channels, 3, pad_mode="pad", padding=1),
            nn.BatchNorm2d(out_channels, momentum=0.9),
            nn.ReLU(),
            nn.Conv2d(out_channels, out_channels, 3, pad_mode="pad", padding=1),
            nn.BatchNorm2d(out_channels, momentum=0.9),
            nn.ReLU(),
        )

    def construct(self, x):
        return self.block(x)


class UNet(nn.Cell):
    """Ronneberger et al., 2015, with batch norm."""

    def __init__(self, in_channels=3, classes=3, width=8, depth=2):
        super().__init__()
        widths = [width * 2**n for n in range(depth + 1)]
        pairs = list(zip(widths[:-1], widths[1:]))  # of each level and the one below it
        self.first = DoubleConv(in_channels, width)
        self.pool = nn.MaxPool2d(2, 2)
        self.downs = nn.CellList([DoubleConv(upper, lower) for upper, lower in pairs])
        self.ups = nn.CellList(
            [
                nn.Conv2dTranspose(lower, upper, 2, 2, pad_mode="valid", has_bias=True)
                for upper, lower in reversed(pairs)
            ]
        )
        self.merges = nn.CellList([DoubleConv(lower, upper) for upper, lower in reversed(pairs)])
        self.head = nn.Conv2d(width, classes, 1, pad_mode="pad", has_bias=True)

    def construct(self, x):
        x = self.first(x)
        skips = []
        for down in self.downs:
            skips.append(x)
            x = down(self.pool(x))
        for up, merge, skip in zip(self.ups, self.merges, skips[::-1]):
            x = merge(ops.cat((skip, up(x)), 1))
        return self.head(x)


def segmentation_loss(logits, masks, weights, dice, smooth=1.0):
    """Weighted cross entropy and Dice loss (over all but the background), from one softmax."""
    wanted = ops.one_hot(masks, logits.shape[1], axis=1).astype(ms.float32)
    log_probs = ops.log_softmax(logits, 1)
    weighted = wanted * weights
    cross_entropy = -(log_probs * weighted).sum() / weighted.sum()
    probs, wanted = ops.exp(log_probs)[:, 1:], wanted[:, 1:]
    overlap = (probs * wanted).sum((2, 3))
    total = (probs + wanted).sum((2, 3))
    return cross_entropy + dice * (1 - ((2 * overlap + smooth) / (total + smooth)).mean())


class AdamW(nn.Optimizer):
    """The rule of torch: the fused kernel with the bias corrections in its rate, eps and decay."""

    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self.parameters.clone("moment1", init="zeros")
        self.moments2 = self.parameters.clone("moment2", init="zeros")
        self.update = ops.AdamWeightDecay()

    def construct(self, grads):
        lr, decay = self.get_lr(), self.get_weight_decay()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = self.global_step.reshape(()).astype(ms.float32)
        root = ops.sqrt(1 - ops.pow(self.beta2, step))
        ratio = root / (1 - ops.pow(self.beta1, step))
        for p, m, v, g in zip(self.parameters, self.moments1, self.moments2, grads):
            self.update(
                p, m, v, lr * ratio, self.beta1, self.beta2, self.eps * root, decay / ratio, g
            )


def make_steps(model, optimizer, args):
    weights = ms.Tensor(np.float32([0.5, 1.0, 1.5]).reshape(1, 3, 1, 1))

    def forward_fn(images, masks):
        return segmentation_loss(model(images), masks, weights, args.dice)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(images, masks):
        loss, grads = grad_fn(images, masks)
        optimizer(grads)
        return loss

    def eval_step(images, masks):
        """The pixels of each class in prediction and mask, and in either of them."""
        found = model(images).argmax(1)
        counts = []
        for n in range(args.classes):
            counts.append(((found == n) & (masks == n)).sum())
            counts.append(((found == n) | (masks == n)).sum())
        return ops.stack(counts)

    return train_step, eval_step


def evaluate(model, eval_step, held_out, args):
    """The mean intersection over union."""
    model.set_train(False)
    counts = sum(eval_step(*batch).asnumpy() for batch in batches(*held_out, args.batch_size))
    overlap, union = counts.reshape(-1, 2).T
    return (overlap / np.maximum(union, 1)).mean()


def main():
    args = parse_args()
    ms.set_seed(args.seed)
    images, masks = make_samples(args.samples, args.size, args.seed)
    cut = args.samples * 3 // 4
    training, held_out = (images[:cut], masks[:cut]), (images[cut:], masks[cut:])
    model = UNet(3, args.classes, args.width, args.depth)
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)
    # a cosine over the epochs, as a list over all steps
    steps = math.ceil(cut / args.batch_size)
    cosine = [(1 + math.cos(math.pi * epoch / args.epochs)) / 2 for epoch in range(args.epochs)]
    rates = [args.lr * factor for factor in cosine for _ in range(steps)]
    optimizer = AdamW(model.trainable_params(), rates, weight_decay=1e-2)
    train_step, eval_step = make_steps(model, optimizer, args)
    best = 0.0
    for epoch in range(args.epochs):
        model.set_train()
        for number, batch in enumerate(batches(*training, args.batch_size)):
            loss = train_step(*batch).item()
            print(f"epoch {epoch} batch {number} loss {loss:.6f}")
        score = evaluate(model, eval_step, held_out, args)
        print(f"epoch {epoch} intersection over union {score:.6f}")
        if score > best:
            best = score
            if args.save:
                ms.save_checkpoint(model, args.save)


if __name__ == "__main__":
    main()
