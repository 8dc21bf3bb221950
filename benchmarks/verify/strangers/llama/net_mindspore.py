"""LLaMA as one flat cell: raw parameters, weights stored (in, out), used as x @ w."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.experimental import optim

VOCAB, D, HEADS, KV, F, LAYERS = 60, 32, 4, 2, 48, 2
HD = D // HEADS


def _u(i, o):
    k = 1 / math.sqrt(i)
    return Tensor(np.random.uniform(-k, k, (i, o)).astype(np.float32))


class Llama(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wte = Parameter(Tensor(np.random.randn(VOCAB, D).astype(np.float32)), name="wte")
        for n in range(LAYERS):
            setattr(self, f"l{n}_wq", Parameter(_u(D, D), name=f"l{n}_wq"))
            setattr(self, f"l{n}_wk", Parameter(_u(D, KV * HD), name=f"l{n}_wk"))
            setattr(self, f"l{n}_wv", Parameter(_u(D, KV * HD), name=f"l{n}_wv"))
            setattr(self, f"l{n}_wo", Parameter(_u(D, D), name=f"l{n}_wo"))
            setattr(self, f"l{n}_w1", Parameter(_u(D, F), name=f"l{n}_w1"))
            setattr(self, f"l{n}_w3", Parameter(_u(D, F), name=f"l{n}_w3"))
            setattr(self, f"l{n}_w2", Parameter(_u(F, D), name=f"l{n}_w2"))
            setattr(
                self,
                f"l{n}_attn_norm",
                Parameter(ops.ones((D,), ms.float32), name=f"l{n}_attn_norm"),
            )
            setattr(
                self, f"l{n}_ffn_norm", Parameter(ops.ones((D,), ms.float32), name=f"l{n}_ffn_norm")
            )
        self.norm_f = Parameter(ops.ones((D,), ms.float32), name="norm_f")
        self.inv_freq = Tensor(
            1.0 / (10000 ** (np.arange(0, HD, 2, dtype=np.float32) / HD)), ms.float32
        )

    def rms(self, x, w):
        return w * (x * ops.rsqrt(ops.mean(ops.square(x), -1, keep_dims=True) + 1e-6))

    def rotary(self, x, cos, sin):
        a, b = ops.chunk(x, 2, axis=-1)
        return x * cos + ops.cat((-b, a), axis=-1) * sin

    def construct(self, ids):
        b, n = ids.shape
        x = ops.gather(self.wte, ids, 0)
        freqs = ops.arange(n).astype(ms.float32).expand_dims(1) * self.inv_freq
        emb = ops.cat((freqs, freqs), axis=-1)
        cos, sin = ops.cos(emb), ops.sin(emb)
        mask = ops.triu(ops.full((n, n), -1e9, dtype=ms.float32), 1)
        for i in range(LAYERS):

            def g(k, i=i):
                return getattr(self, f"l{i}_{k}")

            h = self.rms(x, g("attn_norm"))
            q = ops.matmul(h, g("wq")).reshape(b, n, HEADS, HD).swapaxes(1, 2)
            k = ops.matmul(h, g("wk")).reshape(b, n, KV, HD).swapaxes(1, 2)
            v = ops.matmul(h, g("wv")).reshape(b, n, KV, HD).swapaxes(1, 2)
            q, k = self.rotary(q, cos, sin), self.rotary(k, cos, sin)
            k = ops.repeat_interleave(k, HEADS // KV, 1)
            v = ops.repeat_interleave(v, HEADS // KV, 1)
            w = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) / math.sqrt(HD) + mask, -1)
            y = ops.matmul(w, v).swapaxes(1, 2).reshape(b, n, D)
            x = x + ops.matmul(y, g("wo"))
            h = self.rms(x, g("ffn_norm"))
            x = x + ops.matmul(ops.silu(ops.matmul(h, g("w1"))) * ops.matmul(h, g("w3")), g("w2"))
        return ops.matmul(self.rms(x, self.norm_f), self.wte.T)


def build():
    return Llama()


def loss(logits, labels):
    logits = logits[:, :-1, :].reshape(-1, VOCAB)
    return ops.cross_entropy(logits, labels[:, 1:].reshape(-1).astype(ms.int32))


def optimizer(model):
    opt = optim.AdamW(model.trainable_params(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return opt, optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)
