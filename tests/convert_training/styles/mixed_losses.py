"""Losses in a dict, accumulation, mixed precision, a running mean of the weights, a rate set by hand."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 6)
        self.first = nn.Linear(6, 3)
        self.second = nn.Linear(6, 1)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        x = F.relu(self.trunk(x))
        return {"class": self.first(x), "value": self.second(x).squeeze(-1)}


def criterion(outputs, targets):
    return {
        "class": F.cross_entropy(outputs["class"], targets["class"]),
        "value": F.smooth_l1_loss(outputs["value"], targets["value"]),
    }


def adjust_learning_rate(optimizer, epoch):
    lr = 0.02 * 0.5 * (1.0 + math.cos(math.pi * epoch / 6))
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr * param_group.get("scale", 1.0)
    return lr


@torch.no_grad()
def update_average(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters()):
        a.mul_(decay).add_(p, alpha=1 - decay)


rng = np.random.RandomState(0)
model = Heads()
for p in model.parameters():
    nn.init.constant_(p, 0.0)
    with torch.no_grad():
        p.add_(torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
average = copy.deepcopy(model)
for p in average.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.AdamW(
    [
        {"params": model.trunk.parameters(), "scale": 0.5},
        {"params": [p for n, p in model.named_parameters() if not n.startswith("trunk")]},
    ],
    lr=0.02,
    weight_decay=0.1,
)
scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
weights = {"class": 1.0, "value": 0.3}
accumulate = 2
optimizer.zero_grad()
for step in range(6):
    x = torch.from_numpy(rng.standard_normal((5, 4)).astype(np.float32))
    targets = {"class": torch.from_numpy(rng.randint(0, 3, 5)), "value": x.sum(1)}
    print(adjust_learning_rate(optimizer, step))
    with torch.cuda.amp.autocast(enabled=torch.cuda.is_available()):
        loss_dict = criterion(model(x), targets)
        losses = sum(weights[k] * loss_dict[k] for k in loss_dict)
        loss = losses / accumulate
    if not math.isfinite(loss.item()):
        continue
    scaler.scale(loss).backward()
    if (step + 1) % accumulate == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        update_average(average, model, 0.9)
    for value in loss_dict.values():
        print(value.item())
print(model.unused.weight.sum().item())
print(sum(p.sum().item() for p in average.parameters()))
print(sum(p.abs().sum().item() for p in model.parameters()))
