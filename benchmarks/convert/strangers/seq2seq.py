import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.attn = nn.Linear(hid * 2, hid)
        self.v = nn.Parameter(torch.rand(hid))
        stdv = 1.0 / (self.v.size(0) ** 0.5)
        self.v.data.uniform_(-stdv, stdv)

    def forward(self, hidden, enc):
        timestep = enc.size(0)
        h = hidden.repeat(timestep, 1, 1).transpose(0, 1)
        enc = enc.transpose(0, 1)
        energy = F.relu(self.attn(torch.cat([h, enc], 2))).transpose(1, 2)
        v = self.v.repeat(enc.size(0), 1).unsqueeze(1)
        return F.softmax(torch.bmm(v, energy).squeeze(1), dim=1).unsqueeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, vocab=19, hid=12, n_layers=1):
        super().__init__()
        self.hid = hid
        self.embed = nn.Embedding(vocab, hid, padding_idx=0)
        self.enc = nn.GRU(hid, hid, n_layers, bidirectional=True)
        self.attention = Attention(hid)
        self.cell = nn.GRUCell(hid * 2, hid)
        self.out = nn.Linear(hid * 2, vocab)

    def forward(self, src, trg):
        # T x B
        src, trg = src.t(), trg.t()
        outputs, hidden = self.enc(self.embed(src))
        outputs = outputs[:, :, : self.hid] + outputs[:, :, self.hid :]
        hidden = hidden[-1]
        result = torch.zeros(trg.size(0), trg.size(1), self.out.out_features).to(src.device)
        output = trg.data[0, :]
        for t in range(1, trg.size(0)):
            e = self.embed(output)
            w = self.attention(hidden, outputs)
            context = w.bmm(outputs.transpose(0, 1)).squeeze(1)
            hidden = self.cell(torch.cat([e, context], 1), hidden)
            logit = F.log_softmax(self.out(torch.cat([hidden, context], 1)), dim=1)
            result[t] = logit
            output = trg[t]
        return result[1:]


def build_seq2seq():
    return Seq2Seq()
