"""The tied language model in MindSpore."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, 2 * width)
        self.down = nn.Dense(2 * width, width)

    def construct(self, x):
        return x + self.down(ops.gelu(self.up(self.norm(x))))


class Model(nn.Cell):
    def __init__(self, words=23, width=16, layers=2):
        super().__init__()
        self.table = nn.Embedding(words, width, embedding_table="normal")
        self.mix = nn.Conv1d(width, width, 3, pad_mode="valid", has_bias=True)
        self.blocks = nn.CellList([Block(width) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)

    def construct(self, tokens):
        x = self.table(tokens)
        x = x + self.mix(ops.pad(x.swapaxes(1, 2), (2, 0))).swapaxes(1, 2)
        for block in self.blocks:
            x = block(x)
        return ops.matmul(self.norm(x), self.table.embedding_table.T)


def build():
    return Model()


def loss(logits, target):
    return ops.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), target.flatten().astype(ms.int32)
    )


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=1e-3, weight_decay=0.01)
