"""Two networks whose graph goes through attributes: forward in one method, backward in others."""

import itertools

import numpy as np
import torch
import torch.nn as nn


class Pair:
    def __init__(self):
        self.netG = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))
        self.netD = nn.Sequential(nn.Linear(8, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
        rng = np.random.RandomState(1)
        for p in itertools.chain(self.netG.parameters(), self.netD.parameters()):
            p.data.copy_(
                torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype("float32")) * 0.4
            )
        self.criterionGAN = nn.BCEWithLogitsLoss()
        self.criterionL1 = nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=0.01, betas=(0.5, 0.999))
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=0.01, betas=(0.5, 0.999))
        self.optimizers = [self.optimizer_G, self.optimizer_D]
        self.schedulers = [
            torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1.0 - step / 10)
            for opt in self.optimizers
        ]

    def set_input(self, data):
        self.real_A = data["A"]
        self.real_B = data["B"]

    def forward(self):
        self.fake_B = self.netG(self.real_A)

    def set_requires_grad(self, nets, requires_grad=False):
        if not isinstance(nets, list):
            nets = [nets]
        for net in nets:
            for param in net.parameters():
                param.requires_grad = requires_grad

    def gan_loss(self, prediction, is_real):
        target = torch.ones_like(prediction) if is_real else torch.zeros_like(prediction)
        return self.criterionGAN(prediction, target)

    def backward_D(self):
        fake_AB = torch.cat((self.real_A, self.fake_B), 1)
        pred_fake = self.netD(fake_AB.detach())
        self.loss_D_fake = self.gan_loss(pred_fake, False)
        real_AB = torch.cat((self.real_A, self.real_B), 1)
        self.loss_D_real = self.gan_loss(self.netD(real_AB), True)
        self.loss_D = (self.loss_D_fake + self.loss_D_real) * 0.5
        self.loss_D.backward()

    def backward_G(self):
        fake_AB = torch.cat((self.real_A, self.fake_B), 1)
        self.loss_G_GAN = self.gan_loss(self.netD(fake_AB), True)
        self.loss_G_L1 = self.criterionL1(self.fake_B, self.real_B) * 10.0
        self.loss_G = self.loss_G_GAN + self.loss_G_L1
        self.loss_G.backward()

    def optimize_parameters(self):
        self.forward()
        self.set_requires_grad(self.netD, True)
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.set_requires_grad(self.netD, False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()

    def update_learning_rate(self):
        for scheduler in self.schedulers:
            scheduler.step()


rng = np.random.RandomState(2)
model = Pair()
for epoch in range(4):
    data = {k: torch.from_numpy(rng.standard_normal((5, 4)).astype("float32")) for k in ("A", "B")}
    model.set_input(data)
    model.optimize_parameters()
    model.update_learning_rate()
    for name in ("loss_D", "loss_G", "loss_G_L1"):
        print(float(getattr(model, name)))
    print(model.optimizers[0].param_groups[0]["lr"])
