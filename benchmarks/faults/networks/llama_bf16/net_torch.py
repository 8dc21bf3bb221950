"""The decoder of ../llama with activations rounded to bfloat16 after every layer."""

import math

import torch
from torch import nn
from torch.nn import functional as F

TOTAL_STEPS, WARM_UP = 40, 4


def rounded(x):
    """Round to what bfloat16 holds, forwards and backwards."""
    return x.bfloat16().float()


class Linear(nn.Linear):
    """A linear layer with a bfloat16 result."""

    def forward(self, x):
        return rounded(super().forward(x))


class RMSNorm(nn.Module):
    """Divide by the root of the mean square."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return rounded(x * scale * self.weight)


class Rotary(nn.Module):
    """Cosines and sines of every position and pair of features."""

    def __init__(self, head_dim, base=100.0):
        super().__init__()
        inverse = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inverse", inverse, persistent=False)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1], device=x.device).float(), self.inverse)
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()


def rotate_half(x):
    """Turn (a, b) into (-b, a), where a and b are the halves of the features."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


class Attention(nn.Module):
    """Causal attention; two query heads share a key and a value head."""

    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.q_proj = Linear(dim, heads * self.head_dim, bias=False)
        self.k_proj = Linear(dim, kv_heads * self.head_dim, bias=False)
        self.v_proj = Linear(dim, kv_heads * self.head_dim, bias=False)
        self.o_proj = Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin):
        batch, length, dim = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        q = rounded(q * cos + rotate_half(q) * sin)
        k = rounded(k * cos + rotate_half(k) * sin)
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = rounded(q @ k.transpose(2, 3) / math.sqrt(self.head_dim))
        mask = torch.full((length, length), float("-inf"), device=x.device).triu(1)
        mixed = rounded(rounded(F.softmax(scores + mask, dim=-1)) @ v)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, dim))


class SwiGLU(nn.Module):
    """The gated feed-forward."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = Linear(dim, hidden, bias=False)
        self.up_proj = Linear(dim, hidden, bias=False)
        self.down_proj = Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(rounded(F.silu(self.gate_proj(x)) * self.up_proj(x)))


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, dim, heads, kv_heads, hidden):
        super().__init__()
        self.input_norm = RMSNorm(dim)
        self.attention = Attention(dim, heads, kv_heads)
        self.post_norm = RMSNorm(dim)
        self.mlp = SwiGLU(dim, hidden)

    def forward(self, x, cos, sin):
        x = rounded(x + self.attention(self.input_norm(x), cos, sin))
        return rounded(x + self.mlp(self.post_norm(x)))


class Decoder(nn.Module):
    """Embedding, two layers, a last norm and a head."""

    def __init__(self, vocabulary=53, dim=32, heads=4, kv_heads=2, hidden=44):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.rotary = Rotary(dim // heads)
        self.layers = nn.ModuleList(Layer(dim, heads, kv_heads, hidden) for _ in range(2))
        self.norm = RMSNorm(dim)
        self.lm_head = Linear(dim, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        cos, sin = self.rotary(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


def build():
    """Build the decoder."""
    return Decoder()


def loss(logits, tokens):
    """Return the cross entropy of every next token."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def learning_rate(step):
    """Return the factor of a step: linear warm-up, then half a cosine."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (TOTAL_STEPS - WARM_UP)))


def optimizer(model):
    """Return AdamW with a schedule and clipped gradients; norms are not decayed."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95), eps=1e-8)
    adamw.register_step_pre_hook(
        lambda *_: nn.utils.clip_grad_norm_(model.parameters(), 1.0) and None
    )
    return adamw, torch.optim.lr_scheduler.LambdaLR(adamw, learning_rate)
