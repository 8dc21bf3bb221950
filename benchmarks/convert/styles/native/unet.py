"""Train a U-Net on synthetic pictures of discs with MindSpore; nn.RMSProp keeps eps in the root."""
import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


class DoubleConv(nn.Cell):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.SequentialCell(
            nn.Conv2d(in_channels, mid_channels, 3, pad_mode="pad", padding=1),
            nn.BatchNorm2d(mid_channels, momentum=0.9),
            nn.ReLU(),
            nn.Conv2d(mid_channels, out_channels, 3, pad_mode="pad", padding=1),
            nn.BatchNorm2d(out_channels, momentum=0.9),
            nn.ReLU())

    def construct(self, x):
        return self.double_conv(x)


class Down(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.SequentialCell(
            nn.MaxPool2d(2, 2), DoubleConv(in_channels, out_channels))

    def construct(self, x):
        return self.maxpool_conv(x)


class Up(nn.Cell):
    """The sides of the images are multiples of 8, so that nothing has to be padded."""

    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=True,
                                  recompute_scale_factor=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.Conv2dTranspose(in_channels, in_channels // 2, 2, 2, pad_mode="valid",
                                         has_bias=True)
            self.conv = DoubleConv(in_channels, out_channels)

    def construct(self, x1, x2):
        return self.conv(ops.cat((x2, self.up(x1)), 1))


class OutConv(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1, pad_mode="pad", has_bias=True)

    def construct(self, x):
        return self.conv(x)


class UNet(nn.Cell):
    def __init__(self, n_channels, n_classes, bilinear=False):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 16)
        self.down1 = Down(16, 32)
        self.down2 = Down(32, 64)
        self.down3 = Down(64, 128 // factor)
        self.up1 = Up(128, 64 // factor, bilinear)
        self.up2 = Up(64, 32 // factor, bilinear)
        self.up3 = Up(32, 16, bilinear)
        self.outc = OutConv(16, n_classes)

    def construct(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(self.down3(x3), x3)
        x = self.up2(x, x2)
        x = self.up3(x, x1)
        return self.outc(x)


def dice_loss(probs, target, epsilon=1e-6):
    inter = 2 * (probs * target).sum()
    sets_sum = probs.sum() + target.sum()
    return 1 - (inter + epsilon) / (sets_sum + epsilon)


def segmentation_loss(logits, masks, n_classes):
    """Cross entropy and dice loss, from one softmax."""
    if n_classes == 1:
        logits, target = logits.squeeze(1), masks.astype(ms.float32)
        bce = ops.binary_cross_entropy_with_logits(logits, target)
        return bce + dice_loss(ops.sigmoid(logits), target)
    target = ops.one_hot(masks, n_classes, axis=1).astype(ms.float32)
    log_probs = ops.log_softmax(logits, 1)
    cross_entropy = -(log_probs * target).sum() / masks.size
    return cross_entropy + dice_loss(ops.exp(log_probs), target)


def dice_score(logits, masks, n_classes, epsilon=1e-6):
    """The mean over images and classes, without the background."""
    if n_classes == 1:
        pred, true = logits > 0, masks[:, None] == 1
    else:
        classes = np.arange(1, n_classes)[:, None, None]
        pred, true = logits.argmax(1)[:, None] == classes, masks[:, None] == classes
    inter = 2 * (pred & true).sum((2, 3))
    sets_sum = pred.sum((2, 3)) + true.sum((2, 3))
    sets_sum = np.where(sets_sum == 0, inter, sets_sum)
    return float(((inter + epsilon) / (sets_sum + epsilon)).mean())


def make_discs(n, size=64, seed=0):
    """Coloured discs on a sloping ground with noise; the mask says where the discs are."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[0:size, 0:size] / size
    images = np.empty((n, 3, size, size), np.float32)
    masks = np.zeros((n, size, size), np.int32)
    for image, mask in zip(images, masks):
        slope = rng.uniform(-0.4, 0.4, size=(3, 2, 1, 1))
        image[:] = 0.4 + slope[:, 0] * y + slope[:, 1] * x
        for _ in range(rng.randint(1, 4)):
            cy, cx, r = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.25)
            disc = (y - cy) ** 2 + (x - cx) ** 2 < r ** 2
            image[:, disc] += rng.uniform(0.2, 0.5, size=(3, 1))
            mask[disc] = 1
        image += rng.normal(0, 0.1, size=image.shape)
    return images, masks


class ReduceLROnPlateau:
    """Divide the optimizer's rate by ten after more than `patience` scores without a best one."""

    def __init__(self, optimizer, patience=5, threshold=1e-4):
        self.rate, self.patience, self.threshold = optimizer.learning_rate, patience, threshold
        self.best, self.bad = -np.inf, 0

    def step(self, score):
        if score > self.best + abs(self.best) * self.threshold or self.best == -np.inf:
            self.best, self.bad = score, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            ops.assign(self.rate, ms.Tensor(self.rate.item() / 10, ms.float32))
            self.bad = 0


def make_train_step(model, optimizer, n_classes, gradient_clipping=1.0):
    def forward_fn(images, masks):
        return segmentation_loss(model(images), masks, n_classes)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(images, masks):
        loss, grads = grad_fn(images, masks)
        optimizer(ops.clip_by_global_norm(grads, gradient_clipping))
        return loss

    return train_step


def evaluate(model, val_set, n_classes):
    model.set_train(False)
    scores = [dice_score(model(images).asnumpy(), masks.asnumpy(), n_classes)
              for images, masks in val_set.create_tuple_iterator(num_epochs=1)]
    model.set_train()
    return sum(scores) / max(len(scores), 1)


def train_model(args, model):
    images, masks = make_discs(400)
    n_val = int(len(images) * args.val / 100)
    n_train = len(images) - n_val
    indices = np.random.RandomState(0).permutation(len(images))
    train, val = indices[:n_train], indices[n_train:]
    train_set = NumpySlicesDataset((images[train], masks[train]), shuffle=args.shuffle)
    train_set = train_set.batch(args.batch_size)
    val_set = NumpySlicesDataset((images[val], masks[val]), shuffle=False)
    val_set = val_set.batch(args.batch_size, drop_remainder=True)

    optimizer = nn.RMSProp(model.trainable_params(), args.lr, decay=0.99, momentum=0.9,
                           epsilon=1e-16, weight_decay=1e-8)
    for mean_square in optimizer.ms:  # MindSpore starts it at one, torch at nought
        mean_square.set_data(ops.zeros_like(mean_square))
    scheduler = ReduceLROnPlateau(optimizer)
    train_step = make_train_step(model, optimizer, args.classes)
    division_step = n_train // (5 * args.batch_size)
    global_step = 0

    for epoch in range(1, args.epochs + 1):
        model.set_train()
        epoch_loss, done = 0.0, 0
        for images, masks in train_set.create_tuple_iterator(num_epochs=1):
            loss = train_step(images, masks).item()
            done += len(images)
            global_step += 1
            epoch_loss += loss
            print(f"Epoch {epoch}/{args.epochs}: {done}/{n_train} img, loss {loss:.6f}")
            if division_step > 0 and global_step % division_step == 0:
                score = evaluate(model, val_set, args.classes)
                scheduler.step(score)
                print(f"Validation Dice score: {score:.6f}")

        print(f"Epoch {epoch} mean loss {epoch_loss / train_set.get_dataset_size():.6f}")
        if args.checkpoints:
            os.makedirs(args.checkpoints, exist_ok=True)
            ms.save_checkpoint(model, f"{args.checkpoints}/checkpoint_epoch{epoch}.ckpt")


def main():
    parser = argparse.ArgumentParser(description="Train the UNet on images and target masks")
    parser.add_argument("--epochs", "-e", type=int, default=4)
    parser.add_argument("--batch-size", "-b", type=int, default=8)
    parser.add_argument("--learning-rate", "-l", dest="lr", type=float, default=1e-4)
    parser.add_argument("--load", "--init", dest="load", metavar="FILE", help="load weights")
    parser.add_argument("--save-init", metavar="FILE", help="save the first weights")
    parser.add_argument("--validation", "-v", dest="val", type=float, default=10.0,
                        help="percent of the data that is used as validation (0-100)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the training images")
    parser.add_argument("--checkpoints", metavar="DIR", help="save a checkpoint each epoch")
    parser.add_argument("--amp", action="store_true", help="use mixed precision")
    parser.add_argument("--bilinear", action="store_true", help="use bilinear upsampling")
    parser.add_argument("--classes", "-c", type=int, default=2, help="number of classes")
    args = parser.parse_args()
    if args.amp:
        parser.error("MindSpore's convolutions on CPU are in float32 only")
    ms.set_device("CPU")

    model = UNet(3, args.classes, args.bilinear)
    if args.load:
        ms.load_param_into_net(model, ms.load_checkpoint(args.load))
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)
    train_model(args, model)


if __name__ == "__main__":
    main()
