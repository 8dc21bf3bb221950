"""A student of a teacher, with averages of its weights: by hand, and by torch.optim.swa_utils."""

import copy

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, Subset, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


class AverageMeter(object):
    def __init__(self, fmt=":.5f"):
        self.fmt = fmt
        self.sum = self.count = 0.0
        self.val = 0.0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{val" + self.fmt + "}\n{avg" + self.fmt + "}"
        return fmtstr.format(**self.__dict__)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        size = target.size(0)
        return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / size) for k in topk]


def fill(model, seed):
    rng = np.random.RandomState(seed)
    for p in model.parameters():
        p.data = torch.from_numpy((rng.randn(*p.shape) * 0.3).astype(np.float32))
    return model


def kd_loss(student, teacher, T=2.0):
    p = F.log_softmax(student / T, dim=1)
    return F.kl_div(p, F.softmax(teacher / T, dim=1), reduction="batchmean") * T**2


rng = np.random.RandomState(0)
images = torch.from_numpy(rng.randn(16, 3, 8, 8).astype(np.float32))
data = TensorDataset(images, torch.from_numpy(rng.randint(0, 4, 16)))
loader = DataLoader(Subset(data, range(12)), batch_size=6, shuffle=False, drop_last=True)
teacher, student = fill(Net(6), 1).eval(), fill(Net(4), 2)
for p in teacher.parameters():
    p.requires_grad = False
weights = student.state_dict()
for k in weights:
    if weights[k].dtype.is_floating_point:
        weights[k].copy_(weights[k] * 0.9)
torch.backends.cuda.matmul.allow_tf32 = True
by_hand = copy.deepcopy(student).eval()
optimizer = optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
averaged = AveragedModel(student)
moving = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.8), use_buffers=True)
schedule = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
losses, top1 = AverageMeter(), AverageMeter(":6.2f")
for epoch in range(3):
    student.train()
    for x, y in loader:
        with torch.no_grad():
            t = teacher(x)
        out = student(x)
        loss = F.cross_entropy(out, y, label_smoothing=0.1) + 0.5 * kd_loss(out, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for k, v in by_hand.state_dict().items():
                if v.dtype.is_floating_point:
                    v.mul_(0.9).add_(student.state_dict()[k].detach(), alpha=0.1)
        losses.update(loss.item(), x.size(0))
        top1.update(accuracy(out, y, (1, 2))[0], x.size(0))
    averaged.update_parameters(student)
    moving.update_parameters(student)
    schedule.step()
    print(losses)
    print(top1)
    print(optimizer.param_groups[0]["lr"])
update_bn(loader, averaged)
for net in (student, by_hand, averaged, moving):
    net.eval()
    with torch.inference_mode():
        print(f"{F.cross_entropy(net(images[12:]), data.tensors[1][12:]):.6f}")
shadow, backup = {}, {}
for name, param in student.named_parameters():
    shadow[name] = 0.5 * param.data.clone()
for name, param in student.named_parameters():
    backup[name] = param.data
    param.data = shadow[name]
print(f"{sum(p.abs().sum() for p in student.parameters()):.6f}")
for name, param in student.named_parameters():
    param.data = backup[name]
print(f"{sum(p.abs().sum() for p in student.parameters()):.6f}")
vector = nn.utils.parameters_to_vector(student.parameters())
nn.utils.vector_to_parameters(vector * 2, student.parameters())
student.state_dict()["fc.bias"].add_(1)
print(f"{sum(p.abs().sum() for p in student.parameters()):.6f}")
