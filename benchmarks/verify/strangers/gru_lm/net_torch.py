"""A word-level GRU language model."""

import torch
from torch import nn
from torch.nn import functional as F


class RNNModel(nn.Module):
    def __init__(self, vocab=50, embed=24, hidden=32, layers=2):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(vocab, embed, padding_idx=0)
        self.rnn = nn.GRU(embed, hidden, layers, batch_first=True, dropout=0.2)
        self.decoder = nn.Linear(hidden, vocab)

    def forward(self, tokens):
        emb = self.drop(self.encoder(tokens))
        out, _ = self.rnn(emb)
        return self.decoder(self.drop(out))


def build():
    return RNNModel()


def loss(logits, target):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), ignore_index=0)


def optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)
