"""A training that is stopped, kept in a nested checkpoint, and taken up again."""

import os
import tempfile

import numpy as np
import torch
from torch import nn, optim


def make():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU(), nn.Linear(4, 1))
    rng = np.random.RandomState(0)
    for p in model.parameters():
        p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32))
    optimizer = optim.Adam(model.parameters(), lr=0.05, amsgrad=True)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.5)
    return model, optimizer, scheduler


def run(model, optimizer, scheduler, start, stop):
    for epoch in range(start, stop):
        rng = np.random.RandomState(epoch + 10)
        x = torch.tensor(rng.standard_normal((8, 3)), dtype=torch.float32)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(loss.item())


folder = tempfile.mkdtemp()
path = os.path.join(folder, "last.pth")
model, optimizer, scheduler = make()
run(model, optimizer, scheduler, 0, 3)
torch.save(
    {
        "epoch": 3,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "best": {"loss": 0.5, "names": ["a", "b"], "pair": (1, None)},
    },
    path,
)
model, optimizer, scheduler = make()
checkpoint = torch.load(path, map_location="cpu", weights_only=False)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
run(model, optimizer, scheduler, checkpoint["epoch"], 7)
print(scheduler.get_last_lr()[0])
print(checkpoint["best"]["loss"])
print(float(checkpoint["best"]["pair"] == (1, None)))
model.eval()
torch.save(model.state_dict(), os.path.join(folder, "weights.pth"))
again, _, _ = make()
again.load_state_dict(torch.load(os.path.join(folder, "weights.pth")))
again.eval()
with torch.inference_mode():
    x = torch.ones(2, 3)
    print((again(x) - model(x)).abs().max().item())
