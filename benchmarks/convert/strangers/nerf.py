import numpy as np
import torch
from torch import nn


class Sine(nn.Module):
    def __init__(self, w0=30.0):
        super().__init__()
        self.w0 = w0

    def forward(self, x):
        return torch.sin(self.w0 * x)


class SineLayer(nn.Module):
    def __init__(self, i, o, is_first=False, omega_0=30):
        super().__init__()
        self.omega_0, self.is_first, self.in_features = omega_0, is_first, i
        self.linear = nn.Linear(i, o)
        self.init_weights()

    def init_weights(self):
        with torch.no_grad():
            if self.is_first:
                self.linear.weight.uniform_(-1 / self.in_features, 1 / self.in_features)
            else:
                self.linear.weight.uniform_(
                    -np.sqrt(6 / self.in_features) / self.omega_0,
                    np.sqrt(6 / self.in_features) / self.omega_0,
                )

    def forward(self, input):
        return torch.sin(self.omega_0 * self.linear(input))


class Embedder:
    def __init__(self, **kwargs):
        self.kwargs = kwargs
        self.create_embedding_fn()

    def create_embedding_fn(self):
        embed_fns = []
        d = self.kwargs["input_dims"]
        out_dim = 0
        if self.kwargs["include_input"]:
            embed_fns.append(lambda x: x)
            out_dim += d
        max_freq, N_freqs = self.kwargs["max_freq_log2"], self.kwargs["num_freqs"]
        freq_bands = 2.0 ** torch.linspace(0.0, max_freq, steps=N_freqs)
        for freq in freq_bands:
            for p_fn in self.kwargs["periodic_fns"]:
                embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
                out_dim += d
        self.embed_fns = embed_fns
        self.out_dim = out_dim

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


class NeRF(nn.Module):
    def __init__(self, D=4, W=16, skips=[2]):
        super().__init__()
        self.emb = Embedder(
            include_input=True,
            input_dims=3,
            max_freq_log2=3,
            num_freqs=4,
            log_sampling=True,
            periodic_fns=[torch.sin, torch.cos],
        )
        ch = self.emb.out_dim
        self.skips = skips
        self.pts = nn.ModuleList(
            [nn.Linear(ch, W)]
            + [nn.Linear(W, W) if i not in skips else nn.Linear(W + ch, W) for i in range(D - 1)]
        )
        self.alpha = nn.Linear(W, 1)
        self.rgb = nn.Linear(W, 3)
        self.siren = nn.Sequential(SineLayer(3, 8, True), SineLayer(8, 1, omega_0=5))

    def forward(self, x):
        e = self.emb.embed(x)
        h = e
        for i, l in enumerate(self.pts):
            h = torch.relu(self.pts[i](h))
            if i in self.skips:
                h = torch.cat([e, h], -1)
        raw = torch.cat([torch.sigmoid(self.rgb(h)), self.alpha(h) + self.siren(x)], -1)
        # volume rendering over the second axis
        z = torch.linspace(2.0, 6.0, raw.shape[1]).expand(raw.shape[:2])
        dists = z[..., 1:] - z[..., :-1]
        dists = torch.cat([dists, torch.tensor([1e10]).expand(dists[..., :1].shape)], -1)
        alpha = 1.0 - torch.exp(-nn.functional.softplus(raw[..., 3]) * dists)
        weights = (
            alpha
            * torch.cumprod(
                torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1
            )[:, :-1]
        )
        rgb = torch.sum(weights[..., None] * raw[..., :3], -2)
        depth = torch.sum(weights * z, -1)
        return rgb, depth


def build_nerf():
    return NeRF()
