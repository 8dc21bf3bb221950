"""Four loops: clipping and a schedule; gradients of two batches; a scaler; a state."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(4, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 3)

    def forward(self, x, state=None):
        h = torch.tanh(self.norm(self.first(x)))
        if state is not None:
            h = h + 0.1 * state
        return self.last(h), h


def make(width):
    model = Net(width)
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


def batches():
    for k in range(6):
        x = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
        yield {"x": x, "y": (torch.arange(8) + k) % 3}


class Settings:
    clip, accumulate, smooth = 0.5, 2, 0.1


def clipped(model, optimizer, criterion, epoch):
    model.train()
    total = 0.0
    for batch in batches():
        optimizer.zero_grad()
        output, _ = model(batch["x"])
        loss = criterion(output, batch["y"])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.4)
        optimizer.step()
        total += loss.item()
    print(total)


def accumulated(model, optimizer, args):
    model.train()
    optimizer.zero_grad()
    for i, batch in enumerate(batches()):
        x, y = batch["x"], batch["y"]
        output, _ = model(x)
        loss = F.cross_entropy(output, y, label_smoothing=args.smooth)
        (loss / args.accumulate).backward()
        if (i + 1) % args.accumulate == 0:
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            optimizer.zero_grad()
            print(norm.item())
        print(loss.item())


def scaled(model, optimizer, scaler):
    model.train()
    for i, batch in enumerate(batches()):
        factor = float("inf") if i == 2 else 1.0
        x, y = batch["x"], batch["y"]
        optimizer.zero_grad()
        output, _ = model(x)
        loss = F.cross_entropy(output, y) * factor
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
        print(scaler.get_scale())
        if i != 2:
            print(loss.item())


def carried(model, optimizer):
    model.train()
    state = torch.zeros(8, 5)
    for batch in batches():
        state = state.detach()
        output, state = model(batch["x"], state)
        loss = F.cross_entropy(output, batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def main():
    model = make(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        clipped(model, optimizer, criterion, epoch)
        scheduler.step()
    model = make(6)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01
    )
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(2):
        accumulated(model, optimizer, Settings)
        scheduler.step()
    model = make(7)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-3, amsgrad=True)
    scaled(model, optimizer, torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2))
    model = make(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(2):
        carried(model, optimizer)
    model.eval()
    with torch.no_grad():
        print(model(torch.ones(2, 4))[0].sum().item())


main()
