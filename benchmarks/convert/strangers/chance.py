"""Chance in forward: noise of several kinds, permutations, steps, samples and skipped layers."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Normal


class Chance(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(6))

    def forward(self, x):
        first, second, third, fourth, fifth, last = self.layers
        x = F.gumbel_softmax(first(x), tau=0.7) + F.gumbel_softmax(second(x), hard=True)
        order, share = torch.randperm(x.shape[0]), random.random()
        x = share * x + (1 - share) * x[order]
        step = torch.randint(1, 10, (x.shape[0],), device=x.device).long()
        x = third(x) * step.view(-1, 1) / 10 + Normal(x, 0.5).rsample()
        chosen = torch.multinomial(fourth(x).softmax(-1), 2)
        x = x + fourth(x) * x.gather(1, chosen).mean(1, keepdim=True)
        drawn = Categorical(logits=fifth(x))
        x = x + drawn.log_prob(drawn.sample())[:, None]
        x = x - torch.empty_like(x).exponential_().log() * 0.1
        if self.training and torch.rand(1).item() < 0.2:
            return x
        kept = torch.zeros(x.shape[0], 1).bernoulli_(0.8)
        return last(x) * kept / 0.8 + torch.normal(mean=x, std=0.1)


def build_chance():
    return Chance()
