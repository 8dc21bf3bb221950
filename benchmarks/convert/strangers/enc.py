import math
import copy
import torch
from torch import nn, Tensor
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class Model(nn.Module):
    def __init__(self, ntoken=17, d=8, nhead=2, nhid=16, nlayers=2, dropout=0.0):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d, dropout)
        layer = TransformerEncoderLayer(d, nhead, nhid, dropout, activation="gelu", norm_first=True)
        self.transformer_encoder = TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.mha = nn.MultiheadAttention(d, nhead, batch_first=True)
        self.encoder = nn.Embedding(ntoken, d)
        self.d_model = d
        self.clones = nn.ModuleList([copy.deepcopy(nn.Linear(d, d)) for _ in range(2)])
        self.decoder = nn.Linear(d, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.encoder.weight.data.uniform_(-initrange, initrange)
        self.decoder.bias.data.zero_()
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor) -> Tensor:
        pad = src.eq(0)
        src = src.t()
        mask = nn.Transformer.generate_square_subsequent_mask(src.size(0))
        x = self.pos_encoder(self.encoder(src) * math.sqrt(self.d_model))
        x = self.transformer_encoder(x, mask)
        y = x.transpose(0, 1)
        y, w = self.mha(y, y, y, key_padding_mask=pad)
        for c in self.clones:
            y = c(y).tanh()
        keep = (~pad).unsqueeze(-1).float()
        pooled = (y * keep).sum(1) / keep.sum(1).clamp(min=1)
        return self.decoder(pooled) + w.mean()


def build_encoder():
    return Model()
