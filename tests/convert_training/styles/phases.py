"""One loop for training and validation, the gradient switched by the phase; the best weights kept."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, seed, count):
        rng = np.random.RandomState(seed)
        self.x = rng.standard_normal((count, 5)).astype(np.float32)
        self.y = (self.x.sum(1) > 0).astype(np.int64)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        return {"inputs": self.x[idx], "labels": self.y[idx]}


def train_model(model, dataloaders, criterion, optimizer, scheduler, num_epochs=3):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss = 0.0
            running_corrects = 0
            for batch in dataloaders[phase]:
                inputs, labels = batch["inputs"], batch["labels"]
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            epoch_loss = running_loss / len(dataloaders[phase].dataset)
            epoch_acc = running_corrects.double() / len(dataloaders[phase].dataset)
            print(epoch_loss)
            print(epoch_acc.item())
            if phase == "val":
                scheduler.step(epoch_loss)
                if epoch_acc > best_acc:
                    best_acc = epoch_acc
                    best_model_wts = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_model_wts)
    return model


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
rng = np.random.RandomState(3)
model.load_state_dict(
    {
        k: torch.from_numpy(rng.standard_normal(tuple(v.shape)).astype(np.float32))
        for k, v in model.state_dict().items()
    }
)
for param in model[0].parameters():
    param.requires_grad = False
optimizer = optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1, momentum=0.9)
loaders = {
    "train": DataLoader(Rows(0, 20), batch_size=8, num_workers=2),
    "val": DataLoader(Rows(1, 9), batch_size=4),
}
model = train_model(
    model,
    loaders,
    nn.CrossEntropyLoss(),
    optimizer,
    lr_scheduler.ReduceLROnPlateau(optimizer, patience=0),
)
print(float(model[0].weight.grad is None))
print(sum(p.detach().abs().sum().item() for p in model.parameters()))
