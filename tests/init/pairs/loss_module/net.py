import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()


class Tagger(nn.Module):
    def __init__(self, features=6, classes=4):
        super().__init__()
        self.rnn = nn.LSTM(features, 8, batch_first=True)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


def make_optimizer(model, lr=0.01):
    return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
