"""A loss that goes back through what an earlier step has computed; losses whose gradients add up."""

import torch
from torch import nn


def made(network):
    for number, p in enumerate(network.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return network


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6, eps=0.1), nn.ReLU(), nn.Linear(6, 4)
        )

    def forward(self, x):
        return torch.tanh(self.layers(x))


def discriminator():
    return made(
        nn.Sequential(
            nn.Linear(4, 5, bias=False),
            nn.BatchNorm1d(5, eps=0.1),
            nn.LeakyReLU(0.2),
            nn.Linear(5, 1),
            nn.Sigmoid(),
        )
    )


def batch(k):
    real = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
    return real, torch.cos(torch.arange(24).reshape(8, 3).float() * (k + 1))


def tell(*networks):
    for network in networks:
        for value in network.state_dict().values():
            if value.dim() == 0:
                continue  # batches are not counted in a port
            print(float(value.double().sum()))
            print(float((value.double() ** 2).sum()))


# as the DCGAN of PyTorch's examples
netG, netD = made(Counted()), discriminator()
criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=0.02, betas=(0.5, 0.999), eps=1e-3)
optimizerG = torch.optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999), eps=1e-3)
for k in range(10):
    netD.zero_grad()
    real, noise = batch(k)
    label = torch.full((8,), 1.0)
    output = netD(real).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()

    fake = netG(noise)
    label.fill_(0.0)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()

    netG.zero_grad()
    label.fill_(1.0)
    output = netD(fake).view(-1)
    errG = criterion(output, label)
    errG.backward()
    optimizerG.step()
    print(errD.item(), errG.item(), D_x, output.mean().item(), fake.sum().item(), sep="\n")
tell(netG, netD)


def train(generator, critic, optimizer_G, optimizer_D, steps):
    """Three losses for one step; the generator's is computed in two statements."""
    for k in range(steps):
        real, z = batch(k)
        optimizer_D.zero_grad()
        loss = -critic(real).mean()
        loss.backward()
        hidden = generator(z)
        images = (hidden + 0.5) * 2.0
        loss_fake = critic(images.detach()).mean()
        loss_fake.backward()
        penalty = 0.1 * (critic(0.5 * real) ** 2).mean()
        penalty.backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
        optimizer_D.step()

        optimizer_G.zero_grad()
        loss_G = (images**2).mean() - critic(images).mean()
        loss_G.backward()
        optimizer_G.step()
        print(loss.item(), loss_fake.item(), penalty.item(), loss_G.item(), sep="\n")


netG, netD = made(Counted()), discriminator()
train(
    netG,
    netD,
    torch.optim.RMSprop(netG.parameters(), lr=0.01, eps=1e-3),
    torch.optim.SGD(netD.parameters(), lr=0.05, momentum=0.9),
    10,
)
tell(netG, netD)
