"""The text classifier in MindSpore, with a recurrence and an optimizer written by hand."""

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.common.initializer import Normal, Uniform, initializer

CLASS_WEIGHTS = (1.0, 0.5, 2.0, 1.5, 0.8)


class GRUDirection(nn.Cell):
    """One direction of the GRU; gates in PyTorch's order: reset, update, new."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        bound = Uniform(hidden_size**-0.5)
        self.weight_ih = Parameter(initializer(bound, (3 * hidden_size, input_size)))
        self.weight_hh = Parameter(initializer(bound, (3 * hidden_size, hidden_size)))
        self.bias_ih = Parameter(initializer(bound, (3 * hidden_size,)))
        self.bias_hh = Parameter(initializer(bound, (3 * hidden_size,)))
        self.hidden_size = hidden_size

    def construct(self, steps):
        hidden = ops.zeros((steps[0].shape[0], self.hidden_size), ms.float32)
        states = []
        for step in steps:
            from_input = ops.matmul(step, self.weight_ih.T) + self.bias_ih
            from_hidden = ops.matmul(hidden, self.weight_hh.T) + self.bias_hh
            reset_i, update_i, new_i = ops.chunk(from_input, 3, axis=1)
            reset_h, update_h, new_h = ops.chunk(from_hidden, 3, axis=1)
            reset = ops.sigmoid(reset_i + reset_h)
            update = ops.sigmoid(update_i + update_h)
            new = ops.tanh(new_i + reset * new_h)
            hidden = (1.0 - update) * new + update * hidden
            states.append(hidden)
        return states


class BiGRU(nn.Cell):
    """Both directions, joined along the features."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.forwards = GRUDirection(input_size, hidden_size)
        self.backwards = GRUDirection(input_size, hidden_size)

    def construct(self, x):
        steps = ops.unbind(x, dim=1)
        ahead = self.forwards(steps)
        back = self.backwards(steps[::-1])[::-1]
        return ops.stack([ops.cat(pair, axis=-1) for pair in zip(ahead, back, strict=True)], axis=1)


class MultiHeadAttention(nn.Cell):
    """Self-attention with an additive mask."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.depth = dim // num_heads
        self.to_q = nn.Dense(dim, dim)
        self.to_k = nn.Dense(dim, dim)
        self.to_v = nn.Dense(dim, dim)
        self.to_out = nn.Dense(dim, dim)

    def heads(self, x):
        """Return (batch, heads, length, depth)."""
        x = x.reshape(x.shape[0], x.shape[1], self.num_heads, self.depth)
        return x.transpose(0, 2, 1, 3)

    def construct(self, x, keep):
        q = self.heads(self.to_q(x)) * self.depth**-0.5
        k = self.heads(self.to_k(x))
        v = self.heads(self.to_v(x))
        bias = (1.0 - keep.astype(ms.float32)) * -1e9
        logits = ops.matmul(q, k.transpose(0, 1, 3, 2)) + bias.expand_dims(1).expand_dims(1)
        y = ops.matmul(ops.softmax(logits, axis=-1), v)
        y = y.transpose(0, 2, 1, 3).reshape(x.shape)
        return self.to_out(y)


class TextNet(nn.Cell):
    """The classifier."""

    def __init__(self):
        super().__init__()
        self.word_table = nn.Embedding(37, 24, embedding_table=Normal(1.0), padding_idx=0)
        self.pos_table = nn.Embedding(12, 24, embedding_table=Normal(1.0))
        self.emb_norm = nn.LayerNorm((24,), epsilon=1e-6)
        self.mha = MultiHeadAttention(24, 3)
        self.post_norm = nn.LayerNorm((24,), epsilon=1e-5)
        self.rnn = BiGRU(24, 14)
        self.drop = nn.Dropout(p=0.3)
        self.fc = nn.Dense(56, 5)

    def construct(self, ids, lengths):
        index = ops.arange(ids.shape[1])
        keep = index < lengths.expand_dims(1)
        ids = ids * keep.astype(ids.dtype)
        words = self.word_table(ids)
        words = words * (ids != 0).astype(ms.float32).expand_dims(-1)  # padding learns nothing
        x = self.emb_norm(words + self.pos_table(index))
        x = self.post_norm(x + self.mha(x, keep))
        states = self.rnn(x)
        real = keep.astype(ms.float32).expand_dims(-1)
        mean = (states * real).sum(axis=1) / real.sum(axis=1)
        top = ops.where(keep.expand_dims(-1), states, Tensor(float("-inf"), ms.float32))
        top = top.max(axis=1)
        pooled = ops.concat((mean, top), axis=1).reshape(ids.shape[0], -1)
        return self.fc(self.drop(pooled))


def build():
    """Build the classifier."""
    return TextNet()


def loss(output, target):
    """Return the weighted cross entropy."""
    weight = Tensor(CLASS_WEIGHTS, ms.float32)
    return ops.cross_entropy(output, target.astype(ms.int32), weight=weight, ignore_index=0)


class Adam:
    """Adam as PyTorch computes it: MindSpore's own puts eps elsewhere."""

    def __init__(self, params, lr, beta1, beta2, eps=1e-8, weight_decay=0.0, clip=None):
        self.parameters = ParameterTuple(params)
        self.first = self.parameters.clone("first", init="zeros")
        self.second = self.parameters.clone("second", init="zeros")
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.weight_decay, self.clip = weight_decay, clip
        self.step = 0

    def __call__(self, grads):
        self.step += 1
        root = (1 - self.beta2**self.step) ** 0.5
        rate = self.lr / (1 - self.beta1**self.step)
        for p, g, m, v in zip(self.parameters, grads, self.first, self.second, strict=True):
            g = ops.clamp(g, -self.clip, self.clip)
            g = g + self.weight_decay * p
            ops.assign(m, self.beta1 * m + (1 - self.beta1) * g)
            ops.assign(v, self.beta2 * v + (1 - self.beta2) * g * g)
            ops.assign(p, p - rate * m / (ops.sqrt(v) / root + self.eps))


def optimizer(net):
    """Return Adam with L2 decay and gradients clipped by value."""
    return Adam(net.trainable_params(), 3e-3, 0.9, 0.98, weight_decay=0.02, clip=0.05)
