"""The networks of these scripts with losses and optimizers, as `isograd verify` asks for them."""

import sys

import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from classification import SmallResNet
from language_model import TransformerModel

# the script of the networks below trains when it is imported: no epochs
sys.argv = ["gan.py", "--niter", "0"]
import gan  # noqa: E402


def classifier():
    return SmallResNet(8, 10)


def classifier_loss(output, target):
    return nn.CrossEntropyLoss(label_smoothing=0.1)(output, target)


def classifier_optimizer(model):
    decay = [p for p in model.parameters() if p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 1e-4}, {"params": no_decay}]
    return optim.SGD(groups, lr=0.1, momentum=0.9)


def language_model():
    return TransformerModel(20, 16, 2, 32, 2)


def language_model_loss(output, target):
    return F.nll_loss(output.view(-1, 20), target.view(-1))


def language_model_optimizer(model):
    return optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)


def generator():
    return gan.Generator()


def generator_loss(output):
    return ((output - 0.5) ** 2).mean()


def discriminator():
    return gan.Discriminator()


def discriminator_loss(output, target):
    return nn.BCELoss()(output, target)


def gan_optimizer(model):
    return optim.Adam(model.parameters(), lr=0.0002, betas=(0.5, 0.999))
