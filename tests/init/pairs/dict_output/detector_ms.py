import mindspore as ms
from mindspore import nn, ops


class Detector(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.SequentialCell(
            nn.Conv2d(3, 8, 3, 2, "pad", 1, has_bias=True), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.classify = nn.Conv2d(8, classes, 1, has_bias=True)
        self.boxes = nn.Conv2d(8, 4, 1, has_bias=True)

    def construct(self, images):
        features = self.backbone(images)
        return {"logits": self.classify(features), "boxes": self.boxes(features)}


net = Detector(classes=3)
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01, momentum=0.9, weight_decay=1e-4)


def forward(images, classes, boxes):
    out = net(images)
    return ops.cross_entropy(out["logits"], classes) + 0.5 * ops.l1_loss(out["boxes"], boxes)


if __name__ == "__main__":
    grad = ms.value_and_grad(forward, None, optimizer.parameters)
    for step in range(100):
        images = ops.randn(2, 3, 16, 16)
        loss, gradients = grad(images, ops.randint(0, 3, (2, 8, 8)), ops.rand(2, 4, 8, 8))
        optimizer(gradients)
