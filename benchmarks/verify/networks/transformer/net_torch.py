"""A small causal language model in PyTorch: pre-normalised transformer blocks."""

import math

import torch
from torch import nn
from torch.nn import functional

MAX_GRADIENT_NORM = 0.5


class Attention(nn.Module):
    """Causal self-attention with several heads, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape

        def split(projected):
            return projected.view(batch, length, self.heads, -1).transpose(1, 2)

        query, key, value = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        mixed = functional.softmax(scores, dim=-1) @ value
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised first and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    """Token and position embeddings, transformer blocks, a last normalisation and a head."""

    def __init__(self, vocabulary, width, heads, depth, context):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.scale = math.sqrt(width)
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=1 / self.scale)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) * self.scale + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build(vocabulary=61, width=32, heads=4, depth=3, context=24):
    """Build the model; embeddings start at 1 / sqrt(width), the rest at PyTorch's defaults."""
    return LanguageModel(vocabulary, width, heads, depth, context)


def loss(output, tokens):
    """Return the cross entropy of every next token."""
    return functional.cross_entropy(output[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def optimizer(model):
    """Return AdamW, which decays matrices only and clips the global norm of the gradients."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    not_decayed = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-6)

    def clip(*_):
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)

    adamw.register_step_pre_hook(clip)
    return adamw
