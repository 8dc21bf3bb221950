import torch
import torch.nn.functional as F
from torch import nn


class Detector(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.classify = nn.Conv2d(8, classes, 1)
        self.boxes = nn.Conv2d(8, 4, 1)

    def forward(self, images):
        features = self.backbone(images)
        return {"logits": self.classify(features), "boxes": self.boxes(features)}


model = Detector(classes=3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

if __name__ == "__main__":
    for step in range(100):
        images = torch.randn(2, 3, 16, 16)
        classes = torch.randint(0, 3, (2, 8, 8))
        boxes = torch.rand(2, 4, 8, 8)
        out = model(images)
        loss = F.cross_entropy(out["logits"], classes) + 0.5 * F.l1_loss(out["boxes"], boxes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
