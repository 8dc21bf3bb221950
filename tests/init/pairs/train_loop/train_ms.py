import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.experimental import optim

BATCH, WIDTH = 8, 10


def get_network(width=WIDTH):
    return nn.SequentialCell(
        nn.Dense(width, 32),
        nn.GELU(approximate=False),
        nn.LayerNorm((32,), epsilon=1e-5),
        nn.Dense(32, 6),
    )


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        decay = [p for p in model.trainable_params() if p.ndim > 1]
        rest = [p for p in model.trainable_params() if p.ndim <= 1]
        self.optimizer = optim.AdamW(
            [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=lr
        )
        self.grad_fn = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.criterion(self.model(x), y)

    def step(self, batch):
        loss, grads = self.grad_fn(*batch)
        self.optimizer(grads)
        return loss


def run():
    trainer = Trainer(get_network(), lr=3e-4)
    for _ in range(10):
        x = ms.Tensor(np.random.randn(BATCH, WIDTH).astype(np.float32))
        y = ms.Tensor(np.random.randint(0, 6, (BATCH,)).astype(np.int32))
        print(trainer.step((x, y)))


if __name__ == "__main__":
    run()
