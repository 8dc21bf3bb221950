"""Steps that are functions: a method, which calls another one, and a function of the file."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(
            nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)
        )
        for number, p in enumerate(self.model.parameters()):
            values = torch.arange(p.numel()).reshape(p.shape).float()
            p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()

    def compute_loss(self, x, y):
        return self.criterion(self.model(x), y)

    def train_step(self, batch):
        self.model.train()
        x, y = batch
        self.optimizer.zero_grad()
        loss = self.compute_loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader):
        for batch in loader:
            print(self.train_step(batch))

    def evaluate(self, loader):
        self.model.eval()
        with torch.no_grad():
            print(sum(self.compute_loss(x, y).item() for x, y in loader))


def step(model, optimizer, x, y):
    output = model(x)
    loss = nn.functional.cross_entropy(output, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, output


loader = [
    (torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3)
    for k in range(3)
]
trainer = Trainer()
for _ in range(3):
    trainer.fit(loader)
    trainer.evaluate(loader)
other = nn.Linear(4, 3)
for p in other.parameters():
    p.data.fill_(0.1)
optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
for _ in range(3):
    for x, y in loader:
        loss, output = step(other, optimizer, x, y)
        print(loss.item())
        print(output.sum().item())
