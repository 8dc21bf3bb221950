"""Train a DCGAN on images of discs."""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
import torch.utils.data

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--batchSize", type=int, default=16, help="input batch size")
parser.add_argument("--samples", type=int, default=160, help="images of the data set")
parser.add_argument("--nz", type=int, default=16, help="size of the latent z vector")
parser.add_argument("--ngf", type=int, default=8)
parser.add_argument("--ndf", type=int, default=8)
parser.add_argument("--niter", type=int, default=2, help="number of epochs")
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--beta1", type=float, default=0.5, help="beta1 for adam")
parser.add_argument("--cuda", action="store_true", default=False)
parser.add_argument("--dry-run", action="store_true", help="stop after one batch")
parser.add_argument("--netG", default="", help="weights of netG to start from")
parser.add_argument("--netD", default="", help="weights of netD to start from")
parser.add_argument("--save-init", default="", help="folder for the first weights")
parser.add_argument("--outf", default="", help="folder for images and checkpoints")
parser.add_argument("--manualSeed", type=int, default=1)

opt = parser.parse_args()
print(opt)

print("Random Seed: ", opt.manualSeed)
random.seed(opt.manualSeed)
torch.manual_seed(opt.manualSeed)
noise_source = np.random.RandomState(opt.manualSeed)

if torch.cuda.is_available() and not opt.cuda:
    print("WARNING: you have a CUDA device, so you should probably run with --cuda")


class Discs(torch.utils.data.Dataset):
    """Bright discs on a dark ground, 32 x 32, in -1..1."""

    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        y, x = np.mgrid[0:32, 0:32]
        self.images = np.empty((count, 3, 32, 32), np.float32)
        for index in range(count):
            cy, cx, r = rng.randint(8, 24), rng.randint(8, 24), rng.randint(4, 8)
            disc = ((y - cy) ** 2 + (x - cx) ** 2 <= r * r).astype(np.float32)
            self.images[index] = disc[None] * rng.uniform(0.5, 1.5, (3, 1, 1)) - 0.75

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], 0


dataset = Discs(opt.samples, opt.manualSeed)
dataloader = torch.utils.data.DataLoader(
    dataset, batch_size=opt.batchSize, shuffle=False, num_workers=int(opt.workers)
)

device = torch.device("cuda:0" if opt.cuda else "cpu")
nz = int(opt.nz)
ngf = int(opt.ngf)
ndf = int(opt.ndf)
nc = 3


def draw_noise(count):
    """Latent vectors that are the same wherever this runs."""
    return torch.from_numpy(noise_source.randn(count, nz, 1, 1).astype(np.float32)).to(device)


# custom weights initialization called on netG and netD
def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            # input is Z, going into a convolution
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            # state size. (ngf*4) x 4 x 4
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            # state size. (ngf*2) x 8 x 8
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            # state size. (ngf) x 16 x 16
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
            # state size. (nc) x 32 x 32
        )

    def forward(self, input):
        return self.main(input)


netG = Generator().to(device)
netG.apply(weights_init)
if opt.netG != "":
    netG.load_state_dict(torch.load(opt.netG))
print(netG)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            # input is (nc) x 32 x 32
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            # state size. (ndf) x 16 x 16
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            # state size. (ndf*2) x 8 x 8
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.LeakyReLU(0.2, inplace=True),
            # state size. (ndf*4) x 4 x 4
            nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        output = self.main(input)
        return output.view(-1, 1).squeeze(1)


netD = Discriminator().to(device)
netD.apply(weights_init)
if opt.netD != "":
    netD.load_state_dict(torch.load(opt.netD))
print(netD)

if opt.save_init:
    torch.save(netG.state_dict(), os.path.join(opt.save_init, "netG.pth"))
    torch.save(netD.state_dict(), os.path.join(opt.save_init, "netD.pth"))

criterion = nn.BCELoss()

fixed_noise = draw_noise(opt.batchSize)
real_label = 1
fake_label = 0

# setup optimizer
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

if opt.dry_run:
    opt.niter = 1

for epoch in range(opt.niter):
    for i, data in enumerate(dataloader, 0):
        ############################
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        ###########################
        # train with real
        netD.zero_grad()
        real_cpu = data[0].to(device)
        batch_size = real_cpu.size(0)
        label = torch.full((batch_size,), real_label, dtype=real_cpu.dtype, device=device)

        output = netD(real_cpu)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        # train with fake
        noise = draw_noise(batch_size)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()

        ############################
        # (2) Update G network: maximize log(D(G(z)))
        ###########################
        netG.zero_grad()
        label.fill_(real_label)  # fake labels are real for generator cost
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z2 = output.mean().item()
        optimizerG.step()

        print(
            "[%d/%d][%d/%d] Loss_D: %.6f Loss_G: %.6f D(x): %.6f D(G(z)): %.6f / %.6f"
            % (
                epoch,
                opt.niter,
                i,
                len(dataloader),
                errD.item(),
                errG.item(),
                D_x,
                D_G_z1,
                D_G_z2,
            )
        )
        if opt.dry_run:
            break

    with torch.no_grad():
        fake = netG(fixed_noise)
    print("fake: mean %.6f std %.6f" % (fake.mean().item(), fake.std().item()))
    # do checkpointing
    if opt.outf:
        np.save(os.path.join(opt.outf, "fake_samples_epoch_%03d.npy" % epoch), fake.cpu().numpy())
        torch.save(netG.state_dict(), os.path.join(opt.outf, "netG_epoch_%d.pth" % epoch))
        torch.save(netD.state_dict(), os.path.join(opt.outf, "netD_epoch_%d.pth" % epoch))
