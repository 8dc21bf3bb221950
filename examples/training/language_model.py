"""Train a transformer language model on a text."""

import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

TEXT = (
    "the quick brown fox jumps over the lazy dog . the lazy dog sleeps in the sun . "
    "a small bird sings on the old tree while the quick fox runs through the green grass . "
)


def parse_args():
    parser = argparse.ArgumentParser(description="Transformer language model")
    parser.add_argument("--data", default="", help="a text file; without it a text of a few words")
    parser.add_argument("--emsize", type=int, default=32)
    parser.add_argument("--nhead", type=int, default=4)
    parser.add_argument("--nhid", type=int, default=64)
    parser.add_argument("--nlayers", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--tied", action="store_true", help="tie the embedding and the decoder")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.98))
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--warmup", type=int, default=10, help="steps of rising rate")
    parser.add_argument("--clip", type=float, default=0.5, help="greatest norm of the gradients")
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each step")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1111)
    parser.add_argument("--log-interval", type=int, default=1)
    parser.add_argument("--init", default="", help="weights to start from")
    parser.add_argument("--save-init", default="", help="keep the first weights")
    parser.add_argument("--save", default="", help="where to keep the best weights")
    return parser.parse_args()


class Dictionary:
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, text):
        self.dictionary = Dictionary()
        ids = self.tokenize(text)
        split = int(0.9 * len(ids))
        self.train, self.valid = ids[:split], ids[split:]

    def tokenize(self, text):
        ids = [self.dictionary.add_word(word) for word in text.split()]
        return torch.tensor(ids, dtype=torch.int64)


class PositionalEncoding(nn.Module):
    """Sines and cosines of several frequencies, added to the embeddings."""

    def __init__(self, d_model, dropout=0.1, max_len=512):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class SelfAttention(nn.Module):
    def __init__(self, d_model, nhead, dropout):
        super().__init__()
        self.nhead = nhead
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.nhead, width // self.nhead)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.nhead)
        scores = scores.masked_fill(mask, float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1))
        out = (weights @ v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.proj(out)


class Block(nn.Module):
    def __init__(self, d_model, nhead, nhid, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = SelfAttention(d_model, nhead, dropout)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, nhid), nn.GELU(), nn.Linear(nhid, d_model), nn.Dropout(dropout)
        )

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class TransformerModel(nn.Module):
    """Embedding, blocks of masked attention, a decoder over all words."""

    def __init__(self, ntoken, d_model=32, nhead=4, nhid=64, nlayers=2, dropout=0.0, tied=False):
        super().__init__()
        self.d_model = d_model
        self.encoder = nn.Embedding(ntoken, d_model)
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        self.layers = nn.ModuleList([Block(d_model, nhead, nhid, dropout) for _ in range(nlayers)])
        self.norm = nn.LayerNorm(d_model)
        self.decoder = nn.Linear(d_model, ntoken, bias=False)
        self.init_weights()
        if tied:
            self.decoder.weight = self.encoder.weight

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def _causal_mask(self, size):
        return torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)

    def forward(self, src):
        mask = self._causal_mask(src.size(1)).to(src.device)
        x = self.pos_encoder(self.encoder(src) * math.sqrt(self.d_model))
        for layer in self.layers:
            x = layer(x, mask)
        return F.log_softmax(self.decoder(self.norm(x)), dim=-1)


def batchify(data, bsz, device):
    """Cut the text into bsz columns; what is left over at its end is dropped."""
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).contiguous().to(device)


def get_batch(source, i, bptt):
    seq_len = min(bptt, source.size(1) - 1 - i)
    data = source[:, i : i + seq_len]
    target = source[:, i + 1 : i + 1 + seq_len].reshape(-1)
    return data, target


def warmup_then_decay(warmup):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return (warmup / (step + 1)) ** 0.5

    return factor


def evaluate(model, source, criterion, bptt, ntokens):
    model.eval()
    total_loss = 0.0
    with torch.no_grad():
        for i in range(0, source.size(1) - 1, bptt):
            data, targets = get_batch(source, i, bptt)
            output = model(data)
            total_loss += data.size(1) * criterion(output.view(-1, ntokens), targets).item()
    return total_loss / (source.size(1) - 1)


def train(model, source, criterion, optimizer, scheduler, ntokens, epoch, args):
    model.train()
    total_loss = 0.0
    start_time = time.time()
    optimizer.zero_grad()
    for batch, i in enumerate(range(0, source.size(1) - 1, args.bptt)):
        data, targets = get_batch(source, i, args.bptt)
        output = model(data)
        loss = criterion(output.view(-1, ntokens), targets)
        (loss / args.accumulate).backward()
        total_loss += loss.item()

        if (batch + 1) % args.accumulate == 0:
            norm = clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            lr = scheduler.get_last_lr()[0]
            print(f"norm {norm.item():.6f} lr {lr:.8f}")

        if batch % args.log_interval == 0:
            cur_loss = total_loss / args.log_interval
            elapsed = time.time() - start_time
            print(
                f"| epoch {epoch:3d} | batch {batch:5d} | ms {elapsed * 1000:5.2f} "
                f"| loss {cur_loss:.6f} | ppl {math.exp(cur_loss):8.2f}"
            )
            total_loss = 0
            start_time = time.time()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    text = TEXT * 60
    if args.data:
        with open(args.data, encoding="utf-8") as file:
            text = file.read()
    corpus = Corpus(text)
    train_data = batchify(corpus.train, args.batch_size, device)
    val_data = batchify(corpus.valid, args.batch_size, device)

    ntokens = len(corpus.dictionary)
    model = TransformerModel(
        ntokens, args.emsize, args.nhead, args.nhid, args.nlayers, args.dropout, args.tied
    )
    if args.init:
        model.load_state_dict(torch.load(args.init))
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)
    model.to(device)
    criterion = nn.NLLLoss()
    optimizer = AdamW(
        model.parameters(), lr=args.lr, betas=tuple(args.betas), weight_decay=args.weight_decay
    )
    scheduler = LambdaLR(optimizer, warmup_then_decay(args.warmup))

    best_val_loss = None
    for epoch in range(1, args.epochs + 1):
        train(model, train_data, criterion, optimizer, scheduler, ntokens, epoch, args)
        val_loss = evaluate(model, val_data, criterion, args.bptt, ntokens)
        print(
            f"| end of epoch {epoch:3d} | valid loss {val_loss:.6f} | ppl {math.exp(val_loss):8.2f}"
        )
        if best_val_loss is None or val_loss < best_val_loss:
            best_val_loss = val_loss
            if args.save:
                torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
