"""Steps written by hand from p.grad, a recurrent state that is detached between batches."""

import numpy as np
import torch
from torch import nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, 1)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output).view(-1, self.decoder.out_features), hidden

    def init_hidden(self, bsz, nhid):
        return (torch.zeros(1, bsz, nhid), torch.zeros(1, bsz, nhid))


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


rng = np.random.RandomState(0)
model = RNNModel(11, 6, 8)
with torch.no_grad():
    for name, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape)).astype(np.float32)))
criterion = nn.CrossEntropyLoss()
text = torch.from_numpy(rng.randint(0, 11, (26, 3)))
lr, clip = 0.5, 0.25
model.train()
total_loss = 0.0
hidden = model.init_hidden(3, 8)
for i in range(0, 25, 5):
    data, targets = text[i : i + 5], text[i + 1 : i + 6].reshape(-1)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    total_loss += loss.item()
    print(loss.item())
    print(norm.item())
print(sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None))
