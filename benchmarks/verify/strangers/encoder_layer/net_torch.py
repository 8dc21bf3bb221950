"""torch's own TransformerEncoder with an attention-pooled head."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, vocab=40, d=32, heads=4, length=12, classes=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.randn(1, length, d) * 0.1)
        layer = nn.TransformerEncoderLayer(
            d, heads, 64, 0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, 2, norm=nn.LayerNorm(d), enable_nested_tensor=False
        )
        self.query = nn.Parameter(torch.randn(1, 1, d))
        self.pool = nn.MultiheadAttention(d, heads, batch_first=True)
        self.head = nn.Linear(d, classes)

    def forward(self, tokens):
        x = self.encoder(self.embed(tokens) + self.pos)
        query = self.query.expand(x.shape[0], -1, -1)
        pooled, _ = self.pool(query, x, x, need_weights=False)
        return self.head(pooled[:, 0])


def build():
    return Model()


def loss(y, target):
    return F.cross_entropy(y, target)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
