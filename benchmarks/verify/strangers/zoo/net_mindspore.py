import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.experimental import optim


class InstanceNorm(nn.Cell):
    """MindSpore's own InstanceNorm2d is not registered on a CPU."""

    def __init__(self, c, eps=1e-5):
        super().__init__()
        self.gamma = Parameter(ops.ones((c,), ms.float32))
        self.beta = Parameter(ops.zeros((c,), ms.float32))
        self.eps = eps

    def construct(self, x):
        mean = x.mean((2, 3), keep_dims=True)
        var = ((x - mean) ** 2).mean((2, 3), keep_dims=True)
        x = (x - mean) / ops.sqrt(var + self.eps)
        return x * self.gamma.view(1, -1, 1, 1) + self.beta.view(1, -1, 1, 1)


class Zoo(nn.Cell):
    def __init__(self):
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.conv = nn.Conv2d(3, 8, 3, pad_mode="valid", has_bias=True)
        self.norm = InstanceNorm(8)
        self.prelu = nn.PReLU(8)
        self.down = nn.Conv2d(8, 8, 3, 2, pad_mode="pad", padding=1, has_bias=True)
        self.elu = nn.ELU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1, self.fc2, self.fc3 = nn.Dense(128, 32), nn.Dense(32, 32), nn.Dense(32, 32)
        self.mu, self.sigma = nn.Dense(32, 4), nn.Dense(32, 4)

    def construct(self, x):
        x = self.prelu(self.norm(self.conv(self.pad(x))))
        x = self.flatten(self.pool(self.elu(self.down(x))))
        x = ops.mish(self.fc1(x))
        x = ops.selu(self.fc2(x))
        x = ops.logsigmoid(self.fc3(x))
        return self.mu(x), ops.softplus(self.sigma(x)) + 1e-3


def build():
    return Zoo()


def loss(out, target):
    mu, sigma = out
    return (ops.log(sigma) + 0.5 * ((target - mu) / sigma) ** 2).mean()


def optimizer(model):
    return optim.RMSprop(model.trainable_params(), lr=1e-3, alpha=0.9, eps=1e-8)
