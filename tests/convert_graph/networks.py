"""Small networks that each have something that a graph makes hard."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.skip = nn.Conv2d(width, out, 1, stride) if width != out else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn(self.conv(self.relu(x * 1.5)))
        out += self.skip(x)
        return self.relu(out)


class DropPath(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        kept = torch.empty((x.shape[0], 1, 1, 1)).bernoulli_(1 - self.p)
        return x * kept / (1 - self.p)


class Shared(nn.Module):
    """A module called twice, a list of modules, weights tied, weights that another module uses."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.blocks = nn.ModuleList([Block(4, 4), Block(4, 6, 2), Block(6, 6)])
        self.paths = nn.ModuleDict({"a-b": DropPath(0.2), "for": nn.Dropout(0.1)})
        self.twice = nn.Conv2d(6, 6, 1)
        self.head = nn.Linear(6, 5)
        self.other = nn.Linear(6, 5)
        self.other.weight = self.head.weight

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = self.paths["a-b"](self.twice(self.twice(x)))
        x = self.paths["for"](x).mean((2, 3))
        return {"first": self.head(x), "second": F.linear(x, self.other.weight, self.other.bias)}


class Heads(nn.Module):
    """Another result in training than in evaluation, and an attention whose layer is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(8)
        self.main, self.extra = nn.Linear(8, 4), nn.Linear(8, 3)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8), persistent=False)
        self.register_buffer("shift", torch.linspace(-1, 1, 8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(tokens) * self.scale + self.shift
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        with torch.no_grad():
            weight = torch.sigmoid(x.mean(-1, keepdim=True))
        x = self.norm(x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]) * weight
        last = x[:, -1]
        return (self.main(last), self.extra(x[:, ::2].sum(1))) if self.training else self.main(last)


class Frozen(nn.Module):
    """Names that a cell has for itself, a buffer that is written, frozen weights, split results."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = nn.Linear(6, 6)
        self.phase.weight.requires_grad_(False)
        self.gain = nn.Parameter(torch.ones(6))
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (self.phase(x) * self.gain).clamp_(min=-0.5)
        self.seen.add_(x.detach().mean(0))
        first, second = x.split([2, 4], 1)
        best, where = second.max(1)
        return torch.cat([first, best[:, None], where[:, None].to(x.dtype)], 1)


class Unknown(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(Factors())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(x)
        return found


class Factors(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factors: torch.Tensor = torch.hash_tensor(x).float()
        return factors


class Recurrent(nn.Module):
    """A stack of both ways, a plain one with a state that is given, and one that projects."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.second = nn.GRU(6, 5)
        self.third = nn.LSTM(5, 5, bias=False, proj_size=2, bidirectional=True)
        self.start = nn.Parameter(torch.full((1, 1, 5), 0.1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, (_, memory) = self.first(x)
        start = self.start.expand(1, x.shape[0], 5).contiguous()
        z, last = self.second(y.transpose(0, 1), start)
        narrow, _ = self.third(z)
        return narrow[-1] + memory.mean(), last[0]


class Routed(nn.Module):
    """The greatest scores, changed in place, beside their positions."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.values = nn.Linear(4, 3), nn.Parameter(torch.randn(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares, places = self.scores(x).softmax(-1).topk(2, -1)
        shares /= shares.sum(-1, keepdim=True)
        return (self.values[places] * shares[..., None]).sum(1)


class Several(nn.Module):
    """Results inside a result, which are read again before they are returned."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        hidden = [torch.tanh(self.first(x)), torch.relu(self.first(x * 2))]
        return self.second(hidden[0] + hidden[1]), hidden


class Twice(nn.Module):
    """Modules and a weight under several names."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.alias = self.linear
        block = nn.Sequential(nn.Linear(5, 5), nn.Tanh())
        self.blocks = nn.ModuleList([block, block])
        self.out = nn.Linear(5, 5, bias=False)
        self.out.weight = self.linear.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        found: torch.Tensor = self.out(self.linear(self.alias(x)))
        return found


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


class Follower(nn.Module):
    """A parameter that follows another one in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.leader, self.follower = nn.Linear(3, 3), nn.Linear(3, 3)
        self.follower.weight.requires_grad = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            with torch.no_grad():
                old, new = self.follower.weight.data, self.leader.weight.data
                self.follower.weight.data = old * 0.9 + new * 0.1
        found: torch.Tensor = self.leader(x) + self.follower(x)
        return found


class OwnGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Rounded.apply(self.linear(x))
        return found


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * 2 * x


class TrueGradient(nn.Module):
    """A function whose backward is the derivative of its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Squared.apply(self.linear(x))
        return found


class Stored(nn.Module):
    """Parts of a tensor that are changed, and the whole read afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.linear.bias.clone()
        bias[2:4].zero_()
        y = F.linear(x, self.linear.weight, bias)
        y[:, 0] = x[:, 1] * 2
        y[:, 3:][:, :2].mul_(3)
        y[:, -1].copy_(y[:, 0])
        return y + 1


class Overwritten(nn.Module):
    """A change through a view of another shape."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.view(-1).mul_(3)
        return y + 1


class Rotary(nn.Module):
    """Cosines and sines of positions; of the hidden states it takes the dtype alone."""

    def __init__(self, width: int) -> None:
        super().__init__()
        rates = 10.0 ** -torch.linspace(0, 2, width // 2)
        self.register_buffer("rates", rates, persistent=False)

    def forward(
        self, hidden: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        angles = positions[:, :, None].float() * torch.cat([self.rates, self.rates])
        return angles.cos().to(hidden.dtype), angles.sin().to(hidden.dtype)


class FloatNorm(nn.Module):
    """A norm that casts what it is given, which torch then hands on to the residual as well."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


class Layer(nn.Module):
    """Attention over what came before; it has no use for the positions that it is given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = FloatNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        cosines: torch.Tensor,
        sines: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        query, key, value = self.mixed(self.norm(x)).chunk(3, -1)
        query = query * cosines + query.flip(-1) * sines
        scores = (query @ key.transpose(1, 2)).masked_fill(~mask, -1e9)
        return x + self.out(scores.softmax(-1) @ value)


class Stack(nn.Module):
    """Layers, of which the last hidden states and all of them are returned."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rotary = Rotary(width)
        self.layers = nn.ModuleList([Layer(width), Layer(width)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        batch, steps = x.shape[:2]
        positions = torch.arange(steps)[None]
        cosines, sines = self.rotary(x, positions)
        documents = (torch.arange(steps) % 4 == 0).cumsum(0)
        same = documents[None, :, None] == documents[None, None, :]
        rows = torch.arange(batch)[:, None, None]
        mask = (torch.ones(steps, steps, dtype=torch.bool).tril()[None] | (rows < 0)) & same
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1], positions, cosines, sines, mask))
        return found[-1], found


class Places(nn.Module):
    """Learned positions, from an offset."""

    def __init__(self, width: int, offset: int) -> None:
        super().__init__()
        self.weight, self.offset = nn.Parameter(torch.randn(12, width) * 0.1), offset

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(self.offset, self.offset + ids.shape[1]).expand(ids.shape[0], -1)
        return F.embedding(places, self.weight)


class Language(nn.Module):
    """A language model in the style of Hugging Face's."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.places = nn.ModuleList([Places(8, 0), Places(8, 2)])
        self.kinds = nn.Embedding(2, 8)
        self.register_buffer("kind_of", torch.zeros(1, 16, dtype=torch.int64), persistent=False)
        self.stack, self.head = Stack(8), nn.Linear(16, 11)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) + self.kinds(self.kind_of[:, : ids.shape[1]])
        _, found = self.stack(sum((place(ids) for place in self.places), x))
        return self.head(torch.cat([found[1], found[-1]], -1))
