"""Attacks and inputs that learn: gradients by what `requires_grad_` makes, and by autograd.grad."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def numbers(*shape, seed=0):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) * 0.7137 + seed * 0.331).sin().reshape(shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Linear(4 * 4 * 4, 3)

    def forward(self, x):
        x = F.avg_pool2d(F.softplus(self.conv(x)), 2)
        return self.head(x.flatten(1))


model = Net()
with torch.no_grad():
    for number, parameter in enumerate(model.parameters()):
        parameter.copy_(numbers(*parameter.shape, seed=number) * 0.3)
images, labels = numbers(5, 1, 8, 8), torch.tensor([0, 1, 2, 1, 0])


class PGD:
    def __init__(self, model, eps=0.3, alpha=0.1, steps=3):
        self.model, self.eps, self.alpha, self.steps = model, eps, alpha, steps

    def perturb(self, images, labels):
        adv = images.clone().detach()
        for _ in range(self.steps):
            adv.requires_grad_()
            loss = F.cross_entropy(self.model(adv), labels)
            grad = torch.autograd.grad(loss, adv, retain_graph=False, create_graph=False)[0]
            adv = adv.detach() + self.alpha * grad.sign()
            delta = torch.clamp(adv - images, min=-self.eps, max=self.eps)
            adv = torch.clamp(images + delta, 0, 1).detach()
        return adv


def free_attack(model, images, labels, epsilon, steps):
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(images + delta), labels)
        loss.backward()
        delta.data = (delta + 0.02 * delta.grad.detach().sign()).clamp(-epsilon, epsilon)
        delta.grad.zero_()
    return delta.detach()


def saliency(model, image, label):
    image = image.clone().requires_grad_(True)
    score = model(image)[0, label]
    score.backward()
    return image.grad.abs().amax(1)


def integrated(model, image, label, steps=4):
    total = torch.zeros_like(image)
    for step in range(1, steps + 1):
        point = (image * step / steps).detach().requires_grad_()
        total += torch.autograd.grad(model(point)[:, label].sum(), [point])[0]
    return image * total / steps


attack = PGD(model)
adv = attack.perturb(images, labels)
print((adv * numbers(*adv.shape, seed=3)).sum().item())
delta = free_attack(model, images, labels, 0.1, 3)
print((delta * numbers(*delta.shape, seed=4)).sum().item())
shown = saliency(model, images[:1], 2)
print((shown * numbers(*shown.shape, seed=5)).sum().item())
parts = integrated(model, images, 1)
print((parts * numbers(*parts.shape, seed=6)).sum().item())

# An image that learns, by an optimizer.
image = images[:1].clone()
image.requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.05)
for step in range(4):
    optimizer.zero_grad()
    loss = F.mse_loss(model(image), torch.tensor([[1.0, 0.0, -1.0]])) + 0.01 * image.abs().sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
print((image.detach() * numbers(*image.shape, seed=7)).sum().item())

# Training on attacked images.
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    adv = attack.perturb(images, labels)
    optimizer.zero_grad()
    loss = 0.5 * F.cross_entropy(model(images), labels) + 0.5 * F.cross_entropy(model(adv), labels)
    loss.backward()
    optimizer.step()
    print(loss.item())

# Gradients by parameters, for their norms alone.
loss = F.cross_entropy(model(images), labels)
gradients = torch.autograd.grad(loss, list(model.parameters()))
print(sum((g**2).sum() for g in gradients).sqrt().item())
gradients = torch.autograd.grad(F.cross_entropy(model(images), labels), model.parameters())
for parameter, gradient in zip(model.parameters(), gradients):
    parameter.data.sub_(0.1 * gradient)
print(F.cross_entropy(model(images), labels).item())
