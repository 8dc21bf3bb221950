"""A recommender with two towers, keyword inputs and a dict for an output."""

import torch
from torch import nn
from torch.nn import functional as F


class Tower(nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, o))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, users=30, items=50, d=12):
        super().__init__()
        self.user_embedding = nn.Embedding(users, d)
        self.history = nn.EmbeddingBag(items, d, mode="mean")
        self.item_embedding = nn.Embedding(items, d)
        self.user_tower = Tower(2 * d, 24, 8)
        self.item_tower = Tower(d + 3, 24, 8)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, user, history, item, features):
        u = self.user_tower(torch.cat([self.user_embedding(user), self.history(history)], -1))
        i = self.item_tower(torch.cat([self.item_embedding(item), features], -1))
        return {"scores": u @ i.T * self.temperature.exp(), "user": u, "item": i}


def build():
    return TwoTower()


def loss(out, label):
    ce = F.cross_entropy(out["scores"], torch.arange(out["scores"].shape[0]))
    return ce + F.binary_cross_entropy_with_logits((out["user"] * out["item"]).sum(-1), label)


def optimizer(model):
    return torch.optim.Adagrad(model.parameters(), lr=0.05, initial_accumulator_value=0.1)
