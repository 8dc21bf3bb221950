"""Networks in torch as people write them: their ports are compared with native networks."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEmbedding(nn.Module):
    def __init__(self, size, patch, width):
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))

    def forward(self, x):
        x = self.projection(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        return x + self.positions


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        if self.causal:
            future = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
            scores = scores.masked_fill(future, float("-inf"))
        x = F.softmax(scores, dim=-1) @ value
        return self.output(x.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, size=64, patch=8, width=192, depth=6, heads=3, classes=100):
        super().__init__()
        self.embedding = PatchEmbedding(size, patch, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.norm(self.blocks(self.embedding(x)))
        return self.head(x[:, 0])


class GPT(nn.Module):
    def __init__(self, vocabulary=256, length=64, width=192, depth=4, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads, causal=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Tagger(nn.Module):
    def __init__(self, vocabulary=500, width=64, hidden=128, tags=20):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, ids):
        states, _ = self.lstm(self.embedding(ids))
        return self.head(states)


def vit():
    return VisionTransformer()


def gpt():
    return GPT()


def tagger():
    return Tagger()
