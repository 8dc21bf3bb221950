import torch
from torch import nn

BATCH, WIDTH = 8, 10


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        decay = [p for p in model.parameters() if p.ndim > 1]
        rest = [p for p in model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=lr
        )

    def step(self, batch):
        x, y = batch
        logits = self.model(x)
        loss = self.criterion(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def get_network(width=WIDTH):
    return nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 6))


def run():
    trainer = Trainer(get_network(), lr=3e-4)
    for _ in range(10):
        batch = torch.randn(BATCH, WIDTH), torch.randint(0, 6, (BATCH,))
        print(trainer.step(batch))


if __name__ == "__main__":
    run()
