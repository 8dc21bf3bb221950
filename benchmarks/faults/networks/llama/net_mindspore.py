"""The decoder in MindSpore: queries, keys and values come from one dense layer."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal
from mindspore.experimental import optim


class LlamaRMSNorm(nn.Cell):
    """Root mean square normalisation."""

    def __init__(self, hidden_size, eps):
        super().__init__()
        self.gamma = Parameter(ops.ones((hidden_size,), ms.float32))
        self.variance_epsilon = eps

    def construct(self, hidden):
        variance = ops.square(hidden).mean(axis=-1, keep_dims=True)
        return self.gamma * (hidden * ops.rsqrt(variance + self.variance_epsilon))


class LlamaAttention(nn.Cell):
    """Grouped-query attention with rotary positions."""

    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_size = hidden_size // num_heads
        self.kv_size = num_kv_heads * self.head_size
        self.wqkv = nn.Dense(hidden_size, hidden_size + 2 * self.kv_size, has_bias=False)
        self.wo = nn.Dense(hidden_size, hidden_size, has_bias=False)
        self.inv_norm = 1.0 / math.sqrt(self.head_size)
        freqs = 100.0 ** (-np.arange(0, self.head_size, 2, dtype=np.float32) / self.head_size)
        self.freqs = Tensor(freqs, ms.float32)

    def apply_rotary(self, x, cos, sin):
        """Rotate the features of every head by the angle of their position."""
        half = self.head_size // 2
        rotated = ops.cat((-x[..., half:], x[..., :half]), axis=-1)
        return x * cos + rotated * sin

    def construct(self, hidden):
        bsz, seq, width = hidden.shape
        positions = ops.arange(0, seq).astype(ms.float32)
        angle = positions.expand_dims(-1) * self.freqs
        angle = ops.cat((angle, angle), axis=-1)
        cos, sin = ops.cos(angle), ops.sin(angle)

        qkv = self.wqkv(hidden)
        q, k, v = ops.split(qkv, [width, self.kv_size, self.kv_size], axis=-1)
        q = q.reshape(bsz, seq, self.num_heads, self.head_size).swapaxes(1, 2)
        k = k.reshape(bsz, seq, self.num_kv_heads, self.head_size).swapaxes(1, 2)
        v = v.reshape(bsz, seq, self.num_kv_heads, self.head_size).swapaxes(1, 2)
        q = self.apply_rotary(q, cos, sin)
        k = self.apply_rotary(k, cos, sin)
        k = ops.repeat_interleave(k, self.num_heads // self.num_kv_heads, axis=1)
        v = ops.repeat_interleave(v, self.num_heads // self.num_kv_heads, axis=1)

        score = ops.matmul(q, k.swapaxes(-1, -2)) * self.inv_norm
        visible = ops.tril(ops.ones((seq, seq), ms.float32))
        score = score + (1.0 - visible) * -1e9
        prob = ops.softmax(score, axis=-1)
        context = ops.matmul(prob, v)
        context = context.swapaxes(1, 2).reshape(bsz, seq, width)
        return self.wo(context)


class LlamaDecodeLayer(nn.Cell):
    """Attention and the gated feed-forward, each behind its norm."""

    def __init__(self, hidden_size, num_heads, num_kv_heads, intermediate_size):
        super().__init__()
        self.attention_norm = LlamaRMSNorm(hidden_size, eps=1e-5)
        self.attention = LlamaAttention(hidden_size, num_heads, num_kv_heads)
        self.ffn_norm = LlamaRMSNorm(hidden_size, eps=1e-5)
        self.w1 = nn.Dense(hidden_size, intermediate_size, has_bias=False)
        self.w3 = nn.Dense(hidden_size, intermediate_size, has_bias=False)
        self.w2 = nn.Dense(intermediate_size, hidden_size, has_bias=False)

    def construct(self, h):
        h = h + self.attention(self.attention_norm(h))
        x = self.ffn_norm(h)
        gated = ops.silu(self.w1(x)) * self.w3(x)
        return h + self.w2(gated)


class LlamaModel(nn.Cell):
    """Everything before the head."""

    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab_size, hidden_size, embedding_table=Normal(0.5))
        self.layers = nn.CellList([LlamaDecodeLayer(hidden_size, 4, 2, 44) for _ in range(2)])
        self.norm_out = LlamaRMSNorm(hidden_size, eps=1e-5)

    def construct(self, input_ids):
        h = self.tok_embeddings(input_ids)
        for layer in self.layers:
            h = layer(h)
        return self.norm_out(h)


class LlamaForCausalLM(nn.Cell):
    """The model and its head."""

    def __init__(self):
        super().__init__()
        self.model = LlamaModel(53, 32)
        self.lm_head = nn.Dense(32, 53, has_bias=False)

    def construct(self, input_ids):
        return self.lm_head(self.model(input_ids))


def build():
    """Build the decoder."""
    return LlamaForCausalLM()


def loss(logits, labels):
    """Return the cross entropy of every next token, by hand."""
    shifted = logits[:, :-1].reshape(-1, logits.shape[-1])
    labels = labels[:, 1:].reshape(-1).astype(ms.int32)
    log_prob = ops.log_softmax(shifted, axis=-1)
    picked = ops.gather_elements(log_prob, 1, labels.expand_dims(-1))
    return -picked.mean()


def schedule(step, warm_up=4, total=40):
    """Return the learning rate's factor at a step."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 + 0.5 * math.cos((step - warm_up) / (total - warm_up) * math.pi)


class Trainer:
    """Clip, set the learning rate, step."""

    def __init__(self, groups):
        self.adamw = optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95), eps=1e-8)
        self.parameters = self.adamw.parameters
        self.count = 0

    def __call__(self, grads):
        for group in self.adamw.param_groups:
            ops.assign(group["lr"], Tensor(2e-3 * schedule(self.count), ms.float32))
        self.count += 1
        return self.adamw(ops.clip_by_global_norm(tuple(grads), 1.0))


def optimizer(net):
    """Return the trainer with its groups."""
    norms = [p for p in net.trainable_params() if "norm" in p.name]
    matrices = [p for p in net.trainable_params() if "norm" not in p.name]
    return Trainer(
        [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}]
    )
