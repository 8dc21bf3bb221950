import math
from typing import List, Optional, Dict, NamedTuple
import torch
from torch import nn, Tensor
import torch.nn.functional as F


class Out(NamedTuple):
    logits: Tensor
    hidden: List[Tensor]


class Base(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.cfg = dict(kwargs)
        self.layers: Dict[str, nn.Module] = {}

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def num(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


class TextCNN(Base):
    def __init__(self, vocab=23, dim=6, sizes=(2, 3), **kw):
        super().__init__(vocab=vocab, **kw)
        self.emb = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.tok = nn.Embedding.from_pretrained(
            torch.sin(torch.arange(vocab * dim).float()).view(vocab, dim), freeze=False
        )
        self.convs = nn.ModuleDict({f"k{s}": nn.Conv1d(dim, 5, s) for s in sizes})
        for s in sizes:
            setattr(self, "scale%d" % s, nn.Parameter(torch.full((1,), float(s))))
        self.sizes = sizes
        self.fc = nn.Linear(5 * len(sizes) + dim, 3)
        self.bil = nn.Bilinear(3, 3, 2)

    def forward(self, ids: Tensor) -> Out:
        e = self.tok(ids).to(dtype=self.dtype).transpose(1, 2)
        hs = []
        for s in self.sizes:
            c = F.elu(self.convs["k" + str(s)](e)) * getattr(self, f"scale{s}")
            hs.append(F.max_pool1d(c, c.shape[2]).squeeze(2))
        bag = self.emb(ids)
        y = self.fc(torch.cat(hs + [bag], 1))
        return Out(self.bil(y, y.flip(1)), hs)


class Index(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, 24).reshape(4, 6))

    def forward(self, x: Tensor, i: Tensor):
        a = self.w[i]  # rows
        b = self.w[:, i % 6]  # columns
        c = x[torch.arange(x.size(0)), i % x.size(1)]
        d = x[..., None, ::2][:, :, 0].flip(-1)
        e = torch.gather(x, 1, (i % x.size(1)).unsqueeze(1))
        f = x.masked_select(x > 10).sum() + x[x < -10].sum()
        g = torch.where(x > 0, x, torch.zeros((), dtype=x.dtype))
        h = x.new_zeros(x.shape).scatter(1, (i % x.size(1))[:, None], 1.0)
        k = x.topk(2, dim=-1, largest=False, sorted=True)[0]
        s, order = x.sort(dim=1, descending=True)
        cum = s.cumsum(1).div(torch.arange(1, x.size(1) + 1))
        t = torch.tril(x[:3, :3], diagonal=-1).sum() + torch.triu(x[:3, :3]).diagonal().prod()
        q = -(i - 3) // 2 + (i - 5) % 3
        u = torch.div(i - 3, 2, rounding_mode="trunc") + (i >> 1) + (i & 1)
        m = (
            x.max(dim=1).values
            - x.min(1)[0]
            + torch.max(x)
            + x.amax((0, 1))
            + x.std()
            + x.var(0).sum()
        )
        lse = (
            torch.logsumexp(x, dim=1)
            + x.norm(dim=1)
            + x.abs().mean(-1) ** 0.5
            + (x**2).sum(1).rsqrt()
        )
        n = (x > 0).sum(1) / x.size(1) + q + u
        r = torch.repeat_interleave(x, torch.tensor([1, 2, 0, 1]), dim=0)
        st = torch.stack(torch.unbind(x, 1)[:2], -1).reshape(-1) if True else x
        return (
            a.sum()
            + b.sum()
            + c
            + d.sum(1)
            + e.squeeze()
            + f
            + g.mean(1)
            + h.sum()
            + k.sum(1)
            + cum.sum(1)
            + t
            + m
            + lse
            + n
            + r.sum(1)
            + st.view(-1, 2).sum(-1)
        ), order


class Rec(nn.Module):
    def __init__(self, kind="LSTM"):
        super().__init__()
        self.rnn = getattr(nn, kind)(
            5, 4, num_layers=2, batch_first=True, bidirectional=True, dropout=0.0
        )
        self.cell = nn.LSTMCell(8, 3)
        self.h0 = nn.Parameter(torch.zeros(4, 1, 4))
        for name, param in self.rnn.named_parameters():
            if "bias_hh" in name:
                n = param.size(0)
                param.data[n // 4 : n // 2].fill_(1.0)
            elif "weight_hh" in name:
                nn.init.orthogonal_(param)

    def forward(self, x, hx: Optional[Tensor] = None):
        h = self.h0.expand(-1, x.size(0), -1).contiguous()
        y, (hn, cn) = self.rnn(x, (h, torch.zeros_like(h)))
        hs = (x.new_zeros(x.size(0), 3),) * 2
        outs = []
        for t in range(y.size(1)):
            hs = self.cell(y[:, t], hs)
            outs += [hs[0]]
        return torch.stack(outs, 1), hn.transpose(0, 1).reshape(x.size(0), -1)


class Convs3(nn.Module):
    def __init__(self):
        super().__init__()
        self.c3 = nn.Conv3d(2, 4, (1, 3, 3), padding=(0, 1, 1), stride=(1, 2, 2))
        self.t = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2, bias=False)
        self.ln = nn.LayerNorm([4, 8, 8])
        self.ps = nn.PixelUnshuffle(2)
        self.up = nn.Upsample(size=(5, 5), mode="bicubic", align_corners=False)
        self.lp = nn.LPPool2d(2, 2)
        self.act = nn.ModuleList(
            [
                nn.GLU(dim=1),
                nn.Hardswish(),
                nn.Mish(),
                nn.CELU(0.7),
                nn.Softmax2d(),
                nn.LogSigmoid(),
                nn.Hardsigmoid(),
                nn.SELU(),
                nn.Softsign(),
                nn.Tanhshrink(),
                nn.Threshold(0.1, 0.0),
            ]
        )

    def forward(self, x):
        y = self.c3(x).mean(2)
        y = self.ln(self.t(y))
        z = self.ps(y)
        z = self.act[0](z)
        for a in self.act[1:]:
            z = z + a(z)
        z = F.avg_pool2d(
            F.pad(z, (1, 0, 0, 1), "replicate"), 2, ceil_mode=True, count_include_pad=False
        )
        return self.up(z), self.lp(y.abs() + 0.1)


def build_text():
    return TextCNN()


def build_index():
    return Index()


def build_rec(kind="LSTM"):
    return Rec(kind)


def build_convs3():
    return Convs3()
