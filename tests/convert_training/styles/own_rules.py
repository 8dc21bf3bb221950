"""An optimizer and a schedule of one's own, gradients looked at and changed between."""

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import _LRScheduler
from torch.utils.data import DataLoader, Subset, TensorDataset


class SignMomentum(Optimizer):
    def __init__(self, params, lr=0.01, beta=0.9):
        defaults = dict(lr=lr, beta=beta)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["buffer"] = torch.zeros_like(p)
                state["buffer"] = group["beta"] * state["buffer"] + (1 - group["beta"]) * p.grad
                p.add_(torch.sign(state["buffer"]), alpha=-group["lr"])
        return loss


class Warmup(_LRScheduler):
    def __init__(self, optimizer, steps, last_epoch=-1):
        self.steps = steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        factor = min(1.0, (self.last_epoch + 1) / self.steps)
        return [base_lr * factor for base_lr in self.base_lrs]


rng = np.random.RandomState(0)
model = nn.Linear(4, 2)
with torch.no_grad():
    model.weight.copy_(torch.from_numpy(rng.standard_normal((2, 4)).astype(np.float32)))
    model.bias.zero_()
optimizer = SignMomentum(model.parameters(), lr=0.1)
scheduler = Warmup(optimizer, 4)
data = TensorDataset(torch.from_numpy(rng.standard_normal((12, 4)).astype(np.float32)))
loader = DataLoader(
    Subset(data, list(range(10))),
    batch_size=4,
    collate_fn=lambda items: torch.stack([i[0] for i in items]),
)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        for name, param in model.named_parameters():
            if param.grad is not None and name == "bias":
                param.grad.mul_(0.5)
        print(torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())
        optimizer.step()
        scheduler.step()
        print(loss.item())
        print(optimizer.param_groups[0]["lr"])
