"""Fine-tune a BERT encoder to classify sentences, with gradient accumulation."""

import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser(description="BERT fine-tuning")
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--vocabulary", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("-b", "--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each step")
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--warmup", type=float, default=0.1, help="share of the steps")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--freeze", action="store_true", help="leave the embeddings as they are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--init", default="", help="weights to start from")
    parser.add_argument("--save-init", default="", help="keep the first weights")
    parser.add_argument("--save", default="", help="where to keep the last weights")
    return parser.parse_args()


def make_samples(count, length, vocabulary, seed):
    """Sentences of different lengths, padded by 0; the class is that of the most frequent third."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, vocabulary, (count, length))
    ids[:, 0] = 1
    lengths = rng.integers(length // 2, length + 1, count)
    mask = np.arange(length) < lengths[:, None]
    ids = np.where(mask, ids, 0)
    thirds = (ids - 4) * 3 // (vocabulary - 4)
    votes = np.stack([((thirds == n) & mask & (ids >= 4)).sum(1) for n in range(3)], axis=1)
    labels = votes.argmax(1)
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64)), torch.from_numpy(labels)


class BertEmbeddings(nn.Module):
    def __init__(self, vocabulary, hidden, length):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, hidden, padding_idx=0)
        self.position_embeddings = nn.Embedding(length, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(length).expand((1, -1)))

    def forward(self, input_ids):
        positions = self.position_ids[:, : input_ids.shape[1]]
        token_types = torch.zeros_like(input_ids)
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_types)
        return self.LayerNorm(embeddings + self.position_embeddings(positions))


class BertSelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.head_size = hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def transpose_for_scores(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        probabilities = F.softmax(scores + attention_mask, dim=-1)
        context = torch.matmul(probabilities, value).permute(0, 2, 1, 3).contiguous()
        return context.view(context.shape[0], context.shape[1], -1)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = BertSelfAttention(hidden, heads)
        self.attention_output = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.intermediate = nn.Linear(hidden, 4 * hidden)
        self.output = nn.Linear(4 * hidden, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, hidden_states, attention_mask):
        attended = self.attention_output(self.attention(hidden_states, attention_mask))
        hidden_states = self.attention_norm(attended + hidden_states)
        output = self.output(F.gelu(self.intermediate(hidden_states)))
        return self.output_norm(output + hidden_states)


class BertForSequenceClassification(nn.Module):
    """Devlin et al., 2018: norms behind the residual sums, a pooler on the first token."""

    def __init__(self, vocabulary=64, hidden=32, heads=4, layers=2, length=16, classes=3):
        super().__init__()
        self.embeddings = BertEmbeddings(vocabulary, hidden, length)
        self.layer = nn.ModuleList([BertLayer(hidden, heads) for _ in range(layers)])
        self.pooler = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, classes)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, input_ids, mask):
        extended = (1.0 - mask[:, None, None, :].float()) * -10000.0
        hidden_states = self.embeddings(input_ids)
        for layer in self.layer:
            hidden_states = layer(hidden_states, extended)
        return self.classifier(torch.tanh(self.pooler(hidden_states[:, 0])))


def linear_schedule(steps, warmup):
    rising = max(1, int(steps * warmup))

    def factor(step):
        if step < rising:
            return (step + 1) / rising
        return max(0.0, (steps - step) / max(1, steps - rising))

    return factor


def train(model, loader, criterion, optimizer, scheduler, epoch, args):
    model.train()
    optimizer.zero_grad()
    for number, (input_ids, mask, labels) in enumerate(loader):
        logits = model(input_ids, mask)
        loss = criterion(logits, labels) / args.accumulate
        loss.backward()
        if (number + 1) % args.accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        print(f"epoch {epoch} batch {number} loss {loss.item():.6f}")


def evaluate(model, loader):
    model.eval()
    right, count = 0, 0
    with torch.no_grad():
        for input_ids, mask, labels in loader:
            right += (model(input_ids, mask).argmax(dim=-1) == labels).sum().item()
            count += labels.shape[0]
    return right / count


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    data = make_samples(args.samples, args.length, args.vocabulary, args.seed)
    cut = args.samples * 3 // 4
    training = DataLoader(TensorDataset(*[part[:cut] for part in data]), args.batch_size)
    held_out = DataLoader(TensorDataset(*[part[cut:] for part in data]), args.batch_size)
    model = BertForSequenceClassification(
        args.vocabulary, args.hidden, args.heads, args.layers, args.length
    )
    if args.init:
        model.load_state_dict(torch.load(args.init))
    if args.save_init:
        torch.save(model.state_dict(), args.save_init)
    if args.freeze:
        for parameter in model.embeddings.parameters():
            parameter.requires_grad = False
    no_decay = ("bias", "LayerNorm.weight", "norm.weight")
    learning = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    groups = [
        {
            "params": [p for name, p in learning if not name.endswith(no_decay)],
            "weight_decay": args.weight_decay,
        },
        {"params": [p for name, p in learning if name.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.lr)
    steps = args.epochs * (len(training) // args.accumulate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, linear_schedule(steps, args.warmup))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        train(model, training, criterion, optimizer, scheduler, epoch, args)
        print(f"epoch {epoch} accuracy {evaluate(model, held_out):.6f}")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
