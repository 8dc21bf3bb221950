"""A text classifier in PyTorch: embeddings, masked attention, a GRU both ways, masked pooling."""

import math

import torch
from torch import nn
from torch.nn import functional as F

PAD, UNKNOWN = 0, 0
CLASS_WEIGHTS = (1.0, 0.5, 2.0, 1.5, 0.8)


class Embeddings(nn.Module):
    """Words plus learned positions, normalised."""

    def __init__(self, vocabulary, width, longest):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.position = nn.Embedding(longest, width)
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.norm(self.word(tokens) + self.position(positions))


class SelfAttention(nn.Module):
    """Attention over the words of a sentence, not over its padding."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        mixed = scores.softmax(dim=-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class Classifier(nn.Module):
    """The whole classifier; `lengths` says how many words of a row are real."""

    def __init__(self, vocabulary=37, width=24, heads=3, hidden=14, classes=5, longest=12):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, longest)
        self.attention = SelfAttention(width, heads)
        self.norm = nn.LayerNorm(width)
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(4 * hidden, classes)

    def forward(self, tokens, lengths):
        mask = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        tokens = tokens.masked_fill(~mask, PAD)
        x = self.embeddings(tokens)
        x = self.norm(x + self.attention(x, mask))
        states, _ = self.gru(x)
        real = mask.unsqueeze(-1)
        mean = (states * real).sum(dim=1) / lengths.unsqueeze(1)
        highest = states.masked_fill(~real, float("-inf")).amax(dim=1)
        return self.head(self.dropout(torch.cat([mean, highest], dim=1)))


def build():
    """Build the classifier."""
    return Classifier()


def loss(output, target):
    """Return the weighted cross entropy; examples of unknown class are left out."""
    weight = torch.tensor(CLASS_WEIGHTS, dtype=output.dtype, device=output.device)
    return F.cross_entropy(output, target, weight=weight, ignore_index=UNKNOWN)


def optimizer(model):
    """Return Adam with L2 decay; gradients are clipped by value."""
    adam = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.02)
    adam.register_step_pre_hook(
        lambda *_: nn.utils.clip_grad_value_(model.parameters(), 0.05) and None
    )
    return adam
