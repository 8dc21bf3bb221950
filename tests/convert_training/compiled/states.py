"""A recurrent network whose states go from round to round in a list."""

import torch
from torch import nn

ids = (torch.arange(3 * 26) * 7 % 11).view(3, 26)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.lstm = nn.LSTM(8, 12, batch_first=True)
        self.linear = nn.Linear(12, 11)

    def forward(self, x, states):
        x, (h, c) = self.lstm(self.embed(x), states)
        return self.linear(x.reshape(x.size(0) * x.size(1), x.size(2))), (h, c)


model = Net()
for i, p in enumerate(model.parameters()):
    p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i) * 0.5)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(2):
    states = [torch.zeros(1, 3, 12), torch.zeros(1, 3, 12)]
    for i in range(0, 20, 5):
        inputs, targets = ids[:, i : i + 5], ids[:, i + 1 : i + 6]
        states = [state.detach() for state in states]
        outputs, states = model(inputs, states)
        loss = criterion(outputs, targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
with torch.no_grad():
    outputs, states = model(ids[:, :5], [state * 2 for state in states])
    print(outputs.abs().sum().item())
    print(states[1].sum().item())
