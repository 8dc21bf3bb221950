"""A part-of-speech tagger in PyTorch: embedding, bidirectional LSTM, linear layer."""

import torch
from torch import nn
from torch.nn import functional

PADDING_TAG = 0


class Tagger(nn.Module):
    """Give every token of a sentence a score for every tag."""

    def __init__(self, vocabulary, tags, width, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(2 * hidden, tags)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.classifier(self.dropout(states))


def build(vocabulary=50, tags=9, width=16, hidden=24):
    """Build the tagger with PyTorch's default initialisation."""
    return Tagger(vocabulary, tags, width, hidden)


def loss(output, target):
    """Return the cross entropy per token, which leaves padding out."""
    return functional.cross_entropy(
        output.flatten(0, 1), target.flatten(), ignore_index=PADDING_TAG
    )


def optimizer(model):
    """Return Adam."""
    return torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.999), eps=1e-8)
