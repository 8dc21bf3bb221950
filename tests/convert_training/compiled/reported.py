"""Methods that report something beside their value: a trainer's `log`, a meter, a line that is printed."""

import torch
import torch.nn.functional as F
from torch import nn


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.trainer = None

    def log(self, name, value, shown=False):
        self.trainer.metrics.setdefault(name, []).append(value.detach())
        if shown:
            self.trainer.shown[name] = value

    def training_step(self, batch, batch_idx):
        raise NotImplementedError


class Plain(Module):
    """Reports nothing."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.layer(x), y)


class Classifier(Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        hits = (logits.argmax(1) == y).float()
        self.log("loss", loss, shown=True)
        self.log("hits", hits.mean())
        self.trainer.note(batch_idx, loss)
        return loss * 2.0


class Trainer:
    def __init__(self):
        self.metrics, self.shown, self.rounds = {}, {}, 0

    def note(self, number, loss):
        self.rounds += 1
        print(number + loss.item())

    def fit(self, module, loader, optimizer):
        module.trainer = self
        for epoch in range(2):
            for number, batch in enumerate(loader):
                optimizer.zero_grad()
                loss = module.training_step(batch, number)
                loss.backward()
                optimizer.step()
                if "loss" in self.shown:
                    print(self.shown["loss"].item())
        for values in self.metrics.values():
            print(torch.stack(values).sum().item())


def made(network):
    for number, p in enumerate(network.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return network


loader = [
    (torch.sin(torch.arange(20).reshape(5, 4).float() * (k + 1)), torch.arange(5) % 3)
    for k in range(3)
]
for module in (made(Classifier()), made(Plain())):
    trainer = Trainer()
    trainer.fit(module, loader, torch.optim.SGD(module.parameters(), lr=0.5))
    print(trainer.rounds)
    print(module.training_step(loader[0], 0).item() if trainer.rounds == 0 else 0.0)
module = made(Classifier())
module.trainer = Trainer()
print(module.training_step(loader[0], 7).item())
