import math

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.experimental import optim


class Attention(nn.Cell):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.dim = heads, d // heads
        self.q_proj = nn.Dense(d, d)
        self.k_proj = nn.Dense(d, d)
        self.v_proj = nn.Dense(d, d)
        self.out_proj = nn.Dense(d, d)
        self.drop = nn.Dropout(p=0.1)

    def split(self, x):
        b, n, _ = x.shape
        return x.reshape(b, n, self.heads, self.dim).transpose(0, 2, 1, 3)

    def construct(self, query, memory):
        q, k, v = (
            self.split(self.q_proj(query)),
            self.split(self.k_proj(memory)),
            self.split(self.v_proj(memory)),
        )
        scores = ops.matmul(q / math.sqrt(self.dim), k.swapaxes(-1, -2))
        weights = ops.softmax(scores, axis=-1)
        out = ops.matmul(weights, v).transpose(0, 2, 1, 3)
        return self.out_proj(out.reshape(query.shape))


class Block(nn.Cell):
    def __init__(self, d, heads, ff):
        super().__init__()
        self.ln_1 = nn.LayerNorm((d,), epsilon=1e-5)
        self.attn = Attention(d, heads)
        self.ln_2 = nn.LayerNorm((d,), epsilon=1e-5)
        self.mlp = nn.SequentialCell(
            nn.Dense(d, ff), nn.GELU(approximate=False), nn.Dropout(p=0.1), nn.Dense(ff, d)
        )

    def construct(self, x):
        h = self.ln_1(x)
        x = x + self.attn(h, h)
        return x + self.mlp(self.ln_2(x))


class Model(nn.Cell):
    def __init__(self, vocab=40, d=32, heads=4, length=12, classes=6):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, d, embedding_table=Normal(1.0))
        self.position = Parameter(initializer(Normal(0.1), (length, d)), name="position")
        self.layers = nn.SequentialCell(*[Block(d, heads, 64) for _ in range(2)])
        self.final_norm = nn.LayerNorm((d,), epsilon=1e-5)
        self.pool_query = Parameter(initializer(Normal(1.0), (1, 1, d)), name="pool_query")
        self.pool = Attention(d, heads)
        self.classifier = nn.Dense(d, classes)

    def construct(self, tokens):
        x = self.token_embedding(tokens) + self.position
        x = self.final_norm(self.layers(x))
        query = self.pool_query.broadcast_to((x.shape[0], 1, x.shape[2]))
        return self.classifier(self.pool(query, x).squeeze(1))


def build():
    return Model()


def loss(y, target):
    return ops.cross_entropy(y, target.astype(ms.int32))


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=1e-3, weight_decay=0.05)
