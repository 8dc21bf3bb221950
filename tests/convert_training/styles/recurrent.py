"""Recurrent networks: states carried from one piece to the next, lines of several lengths."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
)
from torch.optim.lr_scheduler import LambdaLR


def fill(model, seed):
    rng = np.random.RandomState(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy((rng.randn(*p.shape) * 0.2).astype("float32")))
    return model


class CharRNN(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(11, 8, padding_idx=0)
        self.rnn = getattr(nn, kind)(8, 8, 2, batch_first=True)
        self.head = nn.Linear(8, 11)
        self.kind = kind

    def init_hidden(self, lines):
        weight = next(self.parameters())
        h = weight.new_zeros(2, lines, self.rnn.hidden_size)
        return (h, torch.zeros_like(h)) if self.kind == "LSTM" else h

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.embed(x), hidden)
        return self.head(out), hidden


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=0)
        self.rnn = getattr(nn, kind)(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(10, 3)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embed(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)
        last = last[0] if isinstance(last, tuple) else last
        return self.out(states), torch.cat([last[-2], last[-1]], dim=1)


rng = np.random.RandomState(1)
stream = torch.as_tensor(rng.randint(1, 11, size=(3, 11)), dtype=torch.long)
for kind in ("LSTM", "GRU"):
    model = fill(CharRNN(kind), 0)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    sched = LambdaLR(opt, lambda s: 0.5 * (1 + math.cos(math.pi * s / 12)))
    hidden = model.init_hidden(3)
    for i in range(0, stream.size(1) - 1, 5):
        x, y = stream[:, i : i + 5], stream[:, i + 1 : i + 6].reshape(-1)
        hidden = repackage_hidden(hidden)
        opt.zero_grad(set_to_none=True)
        logits, hidden = model(x, hidden)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        sched.step()
        print(f"{loss:.6f}\n{norm:.6f}\n{sched.get_last_lr()[0]:.6f}")

texts = [torch.tensor(rng.randint(1, 9, size=n)) for n in (5, 3, 7)]
lengths = torch.tensor([len(t) for t in texts])
tokens = pad_sequence(texts, batch_first=True, padding_value=0)
tags = (tokens % 3).masked_fill(tokens == 0, -100)
for kind in ("GRU", "LSTM", "RNN"):
    tagger = fill(Tagger(kind), 5)
    opt = torch.optim.Adagrad(tagger.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for _ in range(3):
        logits, last = tagger(tokens, lengths)
        loss = criterion(logits.transpose(1, 2), tags) + 0.01 * last.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        right = (logits.argmax(-1).eq(tags) & tags.ne(-100)).sum().float() / tags.ne(-100).sum()
        print("{:.6f}\n{:.4f}".format(loss, right))
packed = pack_sequence([torch.arange(4.0), torch.arange(2.0) + 7])
print(packed.data.sum().item())
print(packed.batch_sizes.sum().item())
