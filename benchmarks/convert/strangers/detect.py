import math
import torch
from torch import nn
import torch.nn.functional as F


def make_anchors(h, w, stride, sizes=(16, 32)):
    ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    centers = torch.stack([xs, ys], dim=-1).reshape(-1, 2).float().add(0.5).mul(stride)
    whs = torch.tensor([[s, s] for s in sizes], dtype=torch.float32)
    a = centers[:, None].expand(-1, len(sizes), 2)
    b = whs[None].expand(h * w, -1, 2)
    return torch.cat([a, b], dim=-1).view(-1, 4)


def decode(anchors, deltas, clip=math.log(1000.0 / 16)):
    dx, dy, dw, dh = deltas.unbind(-1)
    cx = dx * anchors[:, 2] + anchors[:, 0]
    cy = dy * anchors[:, 3] + anchors[:, 1]
    w = torch.exp(torch.clamp(dw, max=clip)) * anchors[:, 2]
    h = torch.exp(torch.clamp(dh, max=clip)) * anchors[:, 3]
    return torch.stack((cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h), dim=-1)


class FPN(nn.Module):
    def __init__(self, cins, c=8):
        super().__init__()
        self.lat = nn.ModuleList([nn.Conv2d(i, c, 1) for i in cins])
        self.out = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1) for _ in cins])
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_uniform_(m.weight, a=1)
                nn.init.constant_(m.bias, 0)

    def forward(self, feats):
        lats = [l(f) for l, f in zip(self.lat, feats)]
        outs = [self.out[-1](lats[-1])]
        last = lats[-1]
        for idx in range(len(lats) - 2, -1, -1):
            up = F.interpolate(last, size=lats[idx].shape[-2:], mode="nearest")
            last = lats[idx] + up
            outs.insert(0, self.out[idx](last))
        outs.append(F.max_pool2d(outs[-1], 1, 2, 0))
        return outs


class Head(nn.Module):
    def __init__(self, c=8, a=2, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.c2 = nn.Conv2d(8, 8, 3, 2, 1)
        self.fpn = FPN([8, 8])
        self.tower = nn.Sequential(
            nn.Conv2d(c, c, 3, 1, 1), nn.GroupNorm(2, c), nn.ReLU(inplace=True)
        )
        self.cls = nn.Conv2d(c, a * classes, 3, padding=1)
        self.box = nn.Conv2d(c, a * 4, 3, padding=1)
        self.classes = classes
        prior = 0.01
        self.cls.bias.data.fill_(-math.log((1 - prior) / prior))
        self.scales = nn.ParameterList([nn.Parameter(torch.tensor(1.0)) for _ in range(3)])

    def forward(self, x):
        f1 = F.relu(self.stem(x))
        f2 = F.relu_(self.c2(f1))
        scores, boxes = [], []
        for lvl, f in enumerate(self.fpn([f1, f2])):
            t = self.tower(f)
            n, _, h, w = f.shape
            s = (
                self.cls(t)
                .view(n, -1, self.classes, h, w)
                .permute(0, 3, 4, 1, 2)
                .reshape(n, -1, self.classes)
            )
            b = (
                (self.box(t) * self.scales[lvl])
                .view(n, -1, 4, h, w)
                .permute(0, 3, 4, 1, 2)
                .reshape(n, -1, 4)
            )
            anchors = make_anchors(h, w, 2 ** (lvl + 1)).to(x)
            scores.append(s)
            boxes.append(torch.stack([decode(anchors, one) for one in b]))
        return torch.cat(scores, dim=1).sigmoid(), torch.cat(boxes, dim=1)


def build_head():
    return Head()
