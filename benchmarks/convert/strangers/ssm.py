import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class SelectiveSSM(nn.Module):
    def __init__(self, d_model=6, d_state=4, d_conv=3, expand=2):
        super().__init__()
        self.d_inner = int(expand * d_model)
        self.dt_rank = math.ceil(d_model / 4)
        self.d_state = d_state
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(
            self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1
        )
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        dt = torch.exp(
            torch.rand(self.d_inner) * (math.log(0.1) - math.log(0.001)) + math.log(0.001)
        ).clamp(min=1e-4)
        inv_dt = dt + torch.log(-torch.expm1(-dt))
        with torch.no_grad():
            self.dt_proj.bias.copy_(inv_dt)
        self.dt_proj.bias._no_reinit = True
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        (b, l, d) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = x.transpose(1, 2)
        x = self.conv1d(x)[:, :, :l]
        x = F.silu(x.transpose(1, 2))
        y = self.ssm(x) * F.silu(res)
        return self.out_proj(y)

    def ssm(self, x):
        n = self.A_log.shape[1]
        A = -torch.exp(self.A_log.float())
        dbl = self.x_proj(x)
        delta, B, C = torch.split(dbl, [self.dt_rank, n, n], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        dA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        dBu = torch.einsum("bld,bln,bld->bldn", delta, B, x)
        s = torch.zeros(x.size(0), self.d_inner, n, device=dA.device)
        ys = []
        for i in range(x.size(1)):
            s = dA[:, i] * s + dBu[:, i]
            ys.append(torch.einsum("bdn,bn->bd", s, C[:, i, :]))
        return torch.stack(ys, dim=1) + x * self.D


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.mixer, self.norm = SelectiveSSM(d), nn.LayerNorm(d, eps=1e-6)

    def forward(self, x):
        return self.mixer(self.norm(x)) + x


def build_ssm(d=6, depth=2):
    layers = [Block(d) for _ in range(depth)]
    layers.append(nn.LayerNorm(d))
    return nn.Sequential(*layers)
