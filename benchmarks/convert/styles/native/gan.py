"""Train a DCGAN on images of discs with MindSpore; an own Adam, as nn.Adam places eps apart."""

import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal

parser = argparse.ArgumentParser()
parser.add_argument("--batchSize", type=int, default=16, help="input batch size")
parser.add_argument("--samples", type=int, default=160, help="images of the data set")
parser.add_argument("--nz", type=int, default=16, help="size of the latent z vector")
parser.add_argument("--ngf", type=int, default=8)
parser.add_argument("--ndf", type=int, default=8)
parser.add_argument("--niter", type=int, default=2, help="number of epochs")
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--beta1", type=float, default=0.5, help="beta1 for adam")
parser.add_argument("--netG", default="", help="weights of netG to start from")
parser.add_argument("--netD", default="", help="weights of netD to start from")
parser.add_argument("--save-init", default="", help="folder for the first weights")
parser.add_argument("--outf", default="", help="folder for images and checkpoints")
parser.add_argument("--manualSeed", type=int, default=1)
opt = parser.parse_args()
ms.set_seed(opt.manualSeed)
noise_source = np.random.RandomState(opt.manualSeed)


def make_discs(count, seed):
    """Bright discs on a dark ground, 32 x 32, in -1..1."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[0:32, 0:32]
    images = np.empty((count, 3, 32, 32), np.float32)
    for index in range(count):
        cy, cx, r = rng.randint(8, 24), rng.randint(8, 24), rng.randint(4, 8)
        disc = ((y - cy) ** 2 + (x - cx) ** 2 <= r * r).astype(np.float32)
        images[index] = disc[None] * rng.uniform(0.5, 1.5, (3, 1, 1)) - 0.75
    return images


def draw_noise(count):
    """Latent vectors that are the same wherever this runs."""
    return ms.Tensor(noise_source.randn(count, opt.nz, 1, 1).astype(np.float32))


def conv(in_channels, out_channels, stride=2, padding=1):
    return nn.Conv2d(in_channels, out_channels, 4, stride, "pad", padding, weight_init=Normal(0.02))


def deconv(in_channels, out_channels, stride=2, padding=1):
    return nn.Conv2dTranspose(
        in_channels, out_channels, 4, stride, "pad", padding, weight_init=Normal(0.02)
    )


def norm(channels):
    return nn.BatchNorm2d(channels, momentum=0.9, gamma_init=Normal(0.02, 1.0))


class Generator(nn.Cell):
    def __init__(self, nz, ngf, nc=3):
        super().__init__()
        self.main = nn.SequentialCell(
            # input is Z, going into a convolution
            deconv(nz, ngf * 4, 1, 0), norm(ngf * 4), nn.ReLU(),
            # state size. (ngf*4) x 4 x 4
            deconv(ngf * 4, ngf * 2), norm(ngf * 2), nn.ReLU(),
            # state size. (ngf*2) x 8 x 8
            deconv(ngf * 2, ngf), norm(ngf), nn.ReLU(),
            # state size. (ngf) x 16 x 16
            deconv(ngf, nc), nn.Tanh(),
            # state size. (nc) x 32 x 32
        )  # fmt: skip

    def construct(self, noise):
        return self.main(noise)


class Discriminator(nn.Cell):
    def __init__(self, ndf, nc=3):
        super().__init__()
        self.main = nn.SequentialCell(
            # input is (nc) x 32 x 32
            conv(nc, ndf), nn.LeakyReLU(0.2),
            # state size. (ndf) x 16 x 16
            conv(ndf, ndf * 2), norm(ndf * 2), nn.LeakyReLU(0.2),
            # state size. (ndf*2) x 8 x 8
            conv(ndf * 2, ndf * 4), norm(ndf * 4), nn.LeakyReLU(0.2),
            # state size. (ndf*4) x 4 x 4
            conv(ndf * 4, 1, 1, 0), nn.Sigmoid(),
        )  # fmt: skip

    def construct(self, images):
        return self.main(images).view(-1)


class Adam(nn.Cell):
    """The rule of torch: the fused kernel with the bias corrections in its rate and eps."""

    def __init__(self, params, lr, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__()
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.parameters = ms.ParameterTuple(params)
        self.moments1 = self.parameters.clone("moment1", init="zeros")
        self.moments2 = self.parameters.clone("moment2", init="zeros")
        self.step = ms.Parameter(ms.Tensor(0.0, ms.float32), name=f"step.{params[0].name}")
        self.update = ops.AdamWeightDecay()

    def construct(self, grads):
        step = ops.assign_add(self.step, 1.0)
        root = ops.sqrt(1 - ops.pow(self.beta2, step))
        lr, eps = self.lr * root / (1 - ops.pow(self.beta1, step)), self.eps * root
        for p, m, v, g in zip(self.parameters, self.moments1, self.moments2, grads):
            self.update(p, m, v, lr, self.beta1, self.beta2, eps, 0.0, g)


def save(net, path):
    ms.save_checkpoint([{"name": n, "data": p} for n, p in net.parameters_and_names()], path)


def prepare(net, name, path):
    if path:
        ms.load_param_into_net(net, ms.load_checkpoint(path), strict_load=True)
    if opt.save_init:
        save(net, os.path.join(opt.save_init, f"{name}.ckpt"))
    net.update_parameters_name(f"{name}.")  # the names of one graph's parameters have to differ
    return net.set_train()


dataset = make_discs(opt.samples, opt.manualSeed)
netG = prepare(Generator(opt.nz, opt.ngf), "netG", opt.netG)
netD = prepare(Discriminator(opt.ndf), "netD", opt.netD)
fixed_noise = draw_noise(opt.batchSize)
optimizerD = Adam(netD.trainable_params(), opt.lr, opt.beta1)
optimizerG = Adam(netG.trainable_params(), opt.lr, opt.beta1)


def criterion(output, label):
    return ops.binary_cross_entropy(output, ops.full_like(output, label))


def forward_d(real, fake):
    """maximize log(D(x)) + log(1 - D(G(z)))"""
    on_real, on_fake = netD(real), netD(fake)
    loss = criterion(on_real, 1.0) + criterion(on_fake, 0.0)
    return loss, on_real.mean(), on_fake.mean()


def forward_g(fake):
    """maximize log(D(G(z)))"""
    output = netD(fake)
    return criterion(output, 1.0), output.mean()


grad_d = ms.value_and_grad(forward_d, None, optimizerD.parameters, has_aux=True)
grad_g = ms.value_and_grad(forward_g, 0, has_aux=True)


@ms.jit
def train_step(real, noise):
    """Both networks on a batch: the generator's images serve its discriminator and itself."""
    fake, pull_back = ms.vjp(netG, noise, weights=optimizerG.parameters)
    (loss_d, d_x, d_g_z1), grads = grad_d(real, ops.stop_gradient(fake))
    optimizerD(grads)
    (loss_g, d_g_z2), grad_fake = grad_g(fake)
    optimizerG(pull_back(grad_fake)[1])
    return ops.stack((loss_d, loss_g, d_x, d_g_z1, d_g_z2))


def generate(noise):
    return netG(noise)


batches = range(0, len(dataset), opt.batchSize)
for epoch in range(opt.niter):
    for i, start in enumerate(batches):
        real = dataset[start : start + opt.batchSize]
        told = train_step(ms.Tensor(real), draw_noise(len(real))).asnumpy()
        print(
            "[%d/%d][%d/%d] Loss_D: %.6f Loss_G: %.6f D(x): %.6f D(G(z)): %.6f / %.6f"
            % (epoch, opt.niter, i, len(batches), *told)
        )

    fake = generate(fixed_noise).asnumpy()
    print("fake: mean %.6f std %.6f" % (fake.mean(), fake.std(ddof=1)))
    if opt.outf:
        np.save(os.path.join(opt.outf, "fake_samples_epoch_%03d.npy" % epoch), fake)
        save(netG, os.path.join(opt.outf, "netG_epoch_%d.ckpt" % epoch))
        save(netD, os.path.join(opt.outf, "netD_epoch_%d.ckpt" % epoch))
