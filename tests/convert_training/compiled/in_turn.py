"""A generator and a discriminator that learn in turn, each by its own loss."""

import torch
from torch import nn


def made(network):
    for number, p in enumerate(network.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return network


generator = made(
    nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
)
discriminator = made(nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1)))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.02, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()

for epoch in range(2):
    for k in range(4):
        real = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
        z = torch.cos(torch.arange(24).reshape(8, 3).float() * (k + 1 + 4 * epoch))
        valid, fake = torch.ones(8, 1), torch.zeros(8, 1)

        optimizer_G.zero_grad()
        made_up = generator(z)
        g_loss = criterion(discriminator(made_up), valid)
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_loss = criterion(discriminator(real), valid)
        fake_loss = criterion(discriminator(made_up.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        print(g_loss.item())
        print(d_loss.item())
generator.eval()
with torch.no_grad():
    print(generator(torch.ones(2, 3)).sum().item())
