import copy
import math
import torch
from torch import nn
import torch.nn.functional as F


class FrozenStart(nn.Module):
    """Batch norms that stay in eval, momentum None, without statistics, dropouts of all kinds."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(6, momentum=None)
        self.bn2 = nn.BatchNorm2d(6, track_running_stats=False)
        self.bn3 = nn.BatchNorm2d(6, affine=False, eps=1e-3)
        self.drop = nn.Dropout2d(0.2)
        self.conv2 = nn.Conv2d(6, 6, 3, stride=2, groups=3, dilation=2, padding=2)
        self.frozen = nn.Sequential(nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6))
        self.fc = nn.Linear(6, 4)
        for p in self.frozen.parameters():
            p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        for m in self.frozen.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
        return self

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu_()
        x = self.drop(x)
        x = self.bn2(x) + F.dropout(x, 0.3, self.training)
        x = F.relu(self.bn3(self.conv2(x)), inplace=True)
        x = self.frozen(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))[:, :, 0, 0]
        return self.fc(F.dropout(x, p=0.1, training=self.training))


class Twice(nn.Module):
    """One module under two names, called several times, in a list too."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(5, 5)
        self.alias = self.lin
        block = nn.Sequential(nn.Linear(5, 5), nn.Tanh())
        self.blocks = nn.ModuleList([block] * 2 + [copy.deepcopy(block)])
        self.out = nn.Linear(5, 5, bias=False)
        self.out.weight = self.lin.weight
        self.temp = nn.Parameter(torch.tensor(0.5))
        self.pos = nn.Parameter(torch.zeros(1, 3, 5), requires_grad=False)
        nn.init.normal_(self.pos, std=0.1)

    def forward(self, x):
        x = x + self.pos
        for i, b in enumerate(self.blocks):
            x = x + b(x) * (i + 1)
        y = self.alias(x)
        z = self.lin(y) / self.temp.exp().clamp(max=100)
        return self.out(z), y[..., -1:]


class Moco(nn.Module):
    """A queue and a momentum encoder, changed in forward."""

    def __init__(self, dim=4, K=8, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        g = torch.arange(dim * K).float().view(dim, K).sin()
        self.register_buffer("queue", nn.functional.normalize(g, dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr : ptr + batch_size] = keys.T
        ptr = (ptr + batch_size) % self.K
        self.queue_ptr[0] = ptr

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            if self.training:
                self._momentum_update_key_encoder()
            k = nn.functional.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        if self.training:
            self._dequeue_and_enqueue(k)
        return logits


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))
        self.momentum = 0.1
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.steps += 1
                self.mean.mul_(1 - self.momentum).add_(x.mean(0), alpha=self.momentum)
                self.var.lerp_(x.var(0, unbiased=False), self.momentum)
        y = (x - self.mean) / torch.sqrt(self.var + 1e-5)
        y[:, 0] = y[:, 0] * 2
        y[:, 1:3] += 0.5
        z = self.lin(y)
        mask = z > 0
        z[mask] *= 0.5
        z[~mask] = z[~mask].exp() - 1
        return z * (1 + self.steps.float() * 0.01)


def build_frozen():
    return FrozenStart()


def build_twice():
    return Twice()


def build_moco():
    return Moco()


def build_counter():
    return Counter()
