from mindspore import nn, ops


def build():
    return nn.SequentialCell(nn.Flatten(), nn.Dense(784, 16), nn.ReLU(), nn.Dense(16, 10))


def loss(output, target):
    return ops.cross_entropy(output, target)


def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1, momentum=0.9)
