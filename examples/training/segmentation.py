"""Train a U-Net to segment discs and squares."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


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
    masks = np.zeros((count, size, size), np.int64)
    for n in range(count):
        y, x, v, u = rng.random(4) * size
        radius = size / 5
        disc = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
        square = np.maximum(abs(rows - v), abs(columns - u)) < radius / 2
        masks[n][disc] = 1
        masks[n][square] = 2
        images[n, 0][disc] += 0.6
        images[n, 1][square] += 0.6
    return torch.from_numpy(images), torch.from_numpy(masks)


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.block(x)


class UNet(nn.Module):
    """Ronneberger et al., 2015, with batch norm."""

    def __init__(self, in_channels=3, classes=3, width=8, depth=2):
        super().__init__()
        self.first = DoubleConv(in_channels, width)
        self.downs = nn.ModuleList(
            DoubleConv(width * 2**n, width * 2 ** (n + 1)) for n in range(depth)
        )
        self.ups = nn.ModuleList(
            nn.ConvTranspose2d(width * 2 ** (n + 1), width * 2**n, 2, stride=2)
            for n in reversed(range(depth))
        )
        self.merges = nn.ModuleList(
            DoubleConv(width * 2 ** (n + 1), width * 2**n) for n in reversed(range(depth))
        )
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.first(x)
        skips = []
        for down in self.downs:
            skips.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, merge, skip in zip(self.ups, self.merges, reversed(skips), strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


class DiceLoss(nn.Module):
    """One less the overlap of probabilities and classes, over all but the background."""

    def __init__(self, classes, smooth=1.0):
        super().__init__()
        self.classes = classes
        self.smooth = smooth

    def forward(self, logits, target):
        probabilities = F.softmax(logits, dim=1)[:, 1:]
        wanted = F.one_hot(target, self.classes).permute(0, 3, 1, 2).float()[:, 1:]
        overlap = (probabilities * wanted).sum(dim=(2, 3))
        total = probabilities.sum(dim=(2, 3)) + wanted.sum(dim=(2, 3))
        return 1 - ((2 * overlap + self.smooth) / (total + self.smooth)).mean()


def train(model, loader, cross_entropy, dice, optimizer, scheduler, epoch, args):
    model.train()
    for number, (images, masks) in enumerate(loader):
        optimizer.zero_grad()
        logits = model(images)
        loss = cross_entropy(logits, masks) + args.dice * dice(logits, masks)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} batch {number} loss {loss.item():.6f}")
    scheduler.step()


def evaluate(model, loader, classes):
    """The mean intersection over union."""
    model.eval()
    overlap = torch.zeros(classes)
    union = torch.zeros(classes)
    with torch.no_grad():
        for images, masks in loader:
            found = model(images).argmax(dim=1)
            for n in range(classes):
                overlap[n] += ((found == n) & (masks == n)).sum()
                union[n] += ((found == n) | (masks == n)).sum()
    return (overlap / union.clamp(min=1)).mean().item()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    images, masks = make_samples(args.samples, args.size, args.seed)
    cut = args.samples * 3 // 4
    training = DataLoader(TensorDataset(images[:cut], masks[:cut]), batch_size=args.batch_size)
    held_out = DataLoader(TensorDataset(images[cut:], masks[cut:]), batch_size=args.batch_size)
    model = UNet(3, args.classes, args.width, args.depth)
    if args.init:
        model.load_state_dict(torch.load(args.init))
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)
    cross_entropy = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 1.5]))
    dice = DiceLoss(args.classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    best = 0.0
    for epoch in range(args.epochs):
        train(model, training, cross_entropy, dice, optimizer, scheduler, epoch, args)
        score = evaluate(model, held_out, args.classes)
        print(f"epoch {epoch} intersection over union {score:.6f}")
        if score > best:
            best = score
            if args.save:
                torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
