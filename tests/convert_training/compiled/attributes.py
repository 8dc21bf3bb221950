"""A trainer whose loss is an attribute, with callbacks that change the mode."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.loss = None
        self.seen = None
        self.total = torch.zeros(())
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.callbacks = []

    def trigger(self):
        for callback in self.callbacks:
            callback(self)

    def look(self):
        return self.loss.item() + self.seen.sum().item()

    def run(self, loader):
        model, self.step = self.model, 0
        model.train()
        for x, y in loader:
            self.batch = x * 2
            self.seen, self.loss = self.both(model(self.batch), y)
            self.loss = self.loss + 0.1 * self.seen.mean()
            self.total = self.total * 0.5 + self.loss.detach()
            model.zero_grad(set_to_none=True)
            self.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.optimizer.step()
            self.trigger()
            self.step += 1
            print(self.loss.item())
            print(self.look())
            print(self.total.item())

    def both(self, out, y):
        return out, nn.functional.cross_entropy(out, y)


def evaluate(trainer):
    if trainer.step == 1:
        trainer.model.eval()
    if trainer.step == 3:
        trainer.model.train()


model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
for number, p in enumerate(model.parameters()):
    values = torch.arange(p.numel()).reshape(p.shape).float()
    p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
loader = [
    (torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3)
    for k in range(5)
]
trainer = Trainer(model)
trainer.run(loader)
trainer.callbacks.append(evaluate)
trainer.run(loader)
