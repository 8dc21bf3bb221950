import mindspore as ms
from mindspore import nn, ops


class TinyLM(nn.Cell):
    def __init__(self, vocab_size=50, dim=16, heads=2, length=12):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, dim)
        self.positions = nn.Embedding(length, dim)
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.qkv = nn.Dense(dim, 3 * dim)
        self.heads = heads
        self.out = nn.Dense(dim, vocab_size)

    def construct(self, idx, targets=None):
        b, t = idx.shape
        x = self.tokens(idx) + self.positions(ops.arange(t))
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / q.shape[-1] ** 0.5
        mask = ops.tril(ops.ones((t, t), ms.float32))
        scores = ops.masked_fill(scores, mask == 0, float("-inf"))
        y = ops.matmul(ops.softmax(scores, -1), v).swapaxes(1, 2).reshape(b, t, -1)
        logits = self.out(x + y)
        if targets is None:
            return logits
        return ops.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def language_loss(logits, targets):
    return ops.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
