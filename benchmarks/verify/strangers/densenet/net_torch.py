import torch
from torch import nn
from torch.nn import functional as F


class DenseLayer(nn.Module):
    def __init__(self, i, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(i)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(i, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features):
        x = torch.cat(features, 1)
        x = self.conv1(self.relu1(self.norm1(x)))
        return self.conv2(self.relu2(self.norm2(x)))


class DenseBlock(nn.ModuleDict):
    def __init__(self, n, i, growth):
        super().__init__()
        for k in range(n):
            self.add_module(f"denselayer{k + 1}", DenseLayer(i + k * growth, growth))

    def forward(self, x):
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    def __init__(self, growth=6, classes=5):
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, 12, 3, padding=1, bias=False))
        self.features.add_module("denseblock1", DenseBlock(3, 12, growth))
        self.features.add_module(
            "transition1",
            nn.Sequential(
                nn.BatchNorm2d(30), nn.ReLU(), nn.Conv2d(30, 16, 1, bias=False), nn.AvgPool2d(2, 2)
            ),
        )
        self.features.add_module("denseblock2", DenseBlock(2, 16, growth))
        self.features.add_module("norm5", nn.BatchNorm2d(28))
        self.classifier = nn.Linear(28, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)

    def forward(self, x):
        x = F.relu(self.features(x))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


def build():
    return DenseNet()


def loss(y, t):
    return F.nll_loss(F.log_softmax(y, 1), t)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
