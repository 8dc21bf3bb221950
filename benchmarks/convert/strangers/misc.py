from collections import OrderedDict
from functools import partial
import torch
from torch import nn
from torch.autograd import Function
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, hidden_dims=None, latent=4):
        super(VAE, self).__init__()
        modules = []
        hidden_dims = hidden_dims or [4, 8]
        cin = 3
        for h in hidden_dims:
            modules.append(
                nn.Sequential(
                    nn.Conv2d(cin, out_channels=h, kernel_size=3, stride=2, padding=1),
                    nn.BatchNorm2d(h),
                    nn.LeakyReLU(),
                )
            )
            cin = h
        self.encoder = nn.Sequential(*modules)
        self.fc_mu = nn.Linear(hidden_dims[-1] * 16, latent)
        self.fc_var = nn.Linear(hidden_dims[-1] * 16, latent)
        self.decoder_input = nn.Linear(latent, hidden_dims[-1] * 16)
        modules = []
        hidden_dims.reverse()
        for i in range(len(hidden_dims) - 1):
            modules.append(
                nn.Sequential(
                    nn.ConvTranspose2d(
                        hidden_dims[i],
                        hidden_dims[i + 1],
                        kernel_size=3,
                        stride=2,
                        padding=1,
                        output_padding=1,
                    ),
                    nn.BatchNorm2d(hidden_dims[i + 1]),
                    nn.LeakyReLU(),
                )
            )
        self.decoder = nn.Sequential(*modules)
        self.final = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
            nn.Conv2d(hidden_dims[-1], 3, 3, padding="same"),
            nn.Tanh(),
        )

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std) if self.training else torch.zeros_like(std)
        return eps * std + mu

    def forward(self, x):
        h = torch.flatten(self.encoder(x), start_dim=1)
        mu, log_var = self.fc_mu(h), self.fc_var(h)
        z = mu + 0 * log_var
        out = self.decoder_input(z).view(-1, 8, 4, 4)
        out = self.final(self.decoder(out))
        kld = torch.mean(-0.5 * torch.sum(1 + log_var - mu**2 - log_var.exp(), dim=1), dim=0)
        return out, kld


def build_vae():
    return VAE()


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return torch.round(x * scale) / scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1).to(g.dtype), None


class QLinear(nn.Linear):
    def __init__(self, *args, bits=3, **kwargs):
        super().__init__(*args, **kwargs)
        self.bits = bits

    def forward(self, x):
        w = RoundSTE.apply(torch.tanh(self.weight), 2**self.bits - 1)
        return F.linear(x, w, self.bias)


def build_ste():
    return nn.Sequential(
        OrderedDict([("a", QLinear(6, 8)), ("act", nn.Hardtanh()), ("b", QLinear(8, 3, bits=4))])
    )


class Hyper(nn.Module):
    """A network whose weights another one makes."""

    REGISTRY = {}

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Hyper.REGISTRY[cls.__name__.lower()] = cls


class FiLM(Hyper):
    def __init__(self, c=4, n=6):
        super().__init__()
        self.hyper = nn.Linear(n, 2 * c)
        self.conv = nn.Conv2d(3, c, 3, padding=1, padding_mode="reflect")
        self.gen = nn.Linear(n, c * 3 * 3)
        self._c = c
        self._feats = {}
        self.conv.register_forward_hook(self._hook("conv"))

    def _hook(self, name):
        def fn(module, inputs, output):
            self._feats[name] = output.mean()

        return fn

    def forward(self, x, code):
        g, b = self.hyper(code).chunk(2, dim=-1)
        y = self.conv(x) * (1 + g[..., None, None]) + b[:, :, None, None]
        k = self.gen(code).view(-1, 1, 3, 3)
        n, c, h, w = y.shape
        y = F.conv2d(y.reshape(1, n * c, h, w), k, padding=1, groups=n * c).view(n, c, h, w)
        y = F.pixel_shuffle(y, 2)
        stats = torch.var(y, dim=(1, 2, 3), unbiased=True, keepdim=True).sqrt()
        return F.normalize(y / (stats + 1e-5), p=2, dim=-1) + self._feats["conv"]


def build_hyper(name="film", **kw):
    return Hyper.REGISTRY[name](**kw)


class Warp(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Sequential(
            nn.Conv2d(3, 4, 7), nn.MaxPool2d(2, stride=2), nn.ReLU(True), nn.AdaptiveMaxPool2d(2)
        )
        self.fc = nn.Sequential(nn.Linear(16, 8), nn.ReLU(True), nn.Linear(8, 6))
        self.fc[2].weight.data.zero_()
        self.fc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
        conv = partial(nn.Conv2d, kernel_size=3, padding=1)
        self.net = nn.Sequential(
            conv(3, 4),
            nn.PReLU(4),
            conv(4, 4, bias=False),
            nn.Softplus(beta=2),
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        )

    def forward(self, x):
        theta = self.fc(torch.flatten(self.loc(x), 1)).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        x = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
        x = self.net(x)
        u = F.unfold(x, kernel_size=2, stride=2)
        u = u.transpose(1, 2) @ torch.eye(u.size(1)).roll(1, 0)
        return F.fold(
            u.transpose(1, 2),
            output_size=tuple(d - d % 2 for d in x.shape[-2:]),
            kernel_size=2,
            stride=2,
        )


def build_deform():
    return Warp()
