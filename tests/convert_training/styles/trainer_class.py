"""A Trainer with everything in self, the loss computed in a method of its own."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
        )

    def forward(self, x):
        return self.layers(x)


class Trainer:
    def __init__(self, model, loaders, epochs=2, device="cpu"):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.train_loader, self.val_loader = loaders
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, weight_decay=0.1)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.05, epochs=epochs, steps_per_epoch=len(self.train_loader)
        )
        self.criterion = nn.CrossEntropyLoss()
        self.epochs = epochs
        self.history = []

    def compute_loss(self, batch):
        inputs, targets = (part.to(self.device) for part in batch)
        outputs = self.model(inputs)
        return self.criterion(outputs, targets), outputs

    def training_step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        loss, _ = self.compute_loss(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        return loss.detach()

    def train_epoch(self):
        self.model.train()
        for batch in self.train_loader:
            loss = self.training_step(batch)
            self.history.append(loss.item())
            print(loss.item())

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total, correct, count = 0.0, 0, 0
        for batch in self.val_loader:
            loss, outputs = self.compute_loss(batch)
            total += loss.item() * len(outputs)
            correct += (outputs.argmax(dim=1) == batch[1]).sum().item()
            count += len(outputs)
        return total / count, correct / count

    def fit(self):
        for _ in range(self.epochs):
            self.train_epoch()
            loss, accuracy = self.evaluate()
            print(loss)
            print(accuracy)


def main():
    rng = np.random.RandomState(0)
    model = Net()
    for parameter in model.parameters():
        values = rng.standard_normal(tuple(parameter.shape)).astype(np.float32)
        parameter.data.copy_(torch.from_numpy(values) * 0.5)
    x = torch.from_numpy(rng.standard_normal((24, 6)).astype(np.float32))
    y = torch.from_numpy(rng.randint(0, 3, 24))
    train = DataLoader(TensorDataset(x[:18], y[:18]), batch_size=6)
    val = DataLoader(TensorDataset(x[18:], y[18:]), batch_size=4)
    Trainer(model, (train, val)).fit()


if __name__ == "__main__":
    main()
