from dataclasses import dataclass

from mindspore import nn, ops


@dataclass
class Config:
    in_channels: int = 3
    width: int = 8
    classes: int = 5
    norm: str = "batch"


class Encoder(nn.Cell):
    def __init__(self, config: Config):
        super().__init__()
        self.conv = nn.Conv2d(
            config.in_channels, config.width, 3, pad_mode="pad", padding=1, has_bias=True
        )
        self.norm = nn.BatchNorm2d(config.width) if config.norm == "batch" else nn.Identity()

    def construct(self, x):
        return ops.relu(self.norm(self.conv(x)))


class Classifier(nn.Cell):
    def __init__(self, config: Config):
        super().__init__()
        self.encoder = Encoder(config)
        self.head = nn.Dense(config.width, config.classes)

    def construct(self, image):
        return self.head(self.encoder(image).mean((2, 3)))


def create_model(width=8, **kwargs):
    return Classifier(Config(width=width, **kwargs))


if __name__ == "__main__":
    import mindspore as ms

    print(create_model(width=6, classes=7)(ms.ops.randn(2, 3, 24, 24)).shape)
