"""The small causal language model, ported by hand to MindSpore."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal
from mindspore.experimental import optim

MAX_GRADIENT_NORM = 0.5


class Embeddings(nn.Cell):
    """The sum of scaled token embeddings and learned position embeddings."""

    def __init__(self, vocabulary, width, context):
        super().__init__()
        self.scale = math.sqrt(width)
        initial = Normal(1 / self.scale)
        self.word = nn.Embedding(vocabulary, width, embedding_table=initial)
        self.position = nn.Embedding(context, width, embedding_table=initial)

    def construct(self, tokens):
        positions = ops.arange(tokens.shape[1])
        return self.word(tokens) * self.scale + self.position(positions)


class SelfAttention(nn.Cell):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.output = nn.Dense(width, width)
        self.softmax = nn.Softmax(axis=-1)

    def split_heads(self, x):
        """Turn (batch, length, width) into (batch, heads, length, head width)."""
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.head_width).transpose(0, 2, 1, 3)

    def construct(self, x):
        query = self.split_heads(self.query(x))
        key = self.split_heads(self.key(x))
        value = self.split_heads(self.value(x))
        scores = ops.matmul(query, key.transpose(0, 1, 3, 2)) / math.sqrt(self.head_width)
        length = x.shape[1]
        future = ops.triu(ops.ones((length, length), ms.float32), 1).astype(ms.bool_)
        scores = scores.masked_fill(future, float("-inf"))
        weights = self.softmax(scores)
        context = ops.matmul(weights, value).transpose(0, 2, 1, 3)
        return self.output(context.reshape(x.shape))


class FeedForward(nn.Cell):
    """Two dense layers with an exact GELU between them."""

    def __init__(self, width):
        super().__init__()
        self.dense_in = nn.Dense(width, 4 * width)
        self.dense_out = nn.Dense(4 * width, width)

    def construct(self, x):
        return self.dense_out(ops.gelu(self.dense_in(x)))


class EncoderLayer(nn.Cell):
    """Attention and feed-forward, each normalised first and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = SelfAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.feed_forward = FeedForward(width)

    def construct(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class LanguageModel(nn.Cell):
    """Embeddings, transformer layers, a last normalisation and a head."""

    def __init__(self, vocabulary, width, heads, depth, context):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, context)
        self.layers = nn.CellList([EncoderLayer(width, heads) for _ in range(depth)])
        self.final_norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.lm_head = nn.Dense(width, vocabulary, has_bias=False)

    def construct(self, tokens):
        x = self.embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.final_norm(x))


def build(vocabulary=61, width=32, heads=4, depth=3, context=24):
    """Build the language model with the initialisation of the reference."""
    return LanguageModel(vocabulary, width, heads, depth, context)


def loss(output, tokens):
    """Return the cross entropy of every next token."""
    logits = output[:, :-1].reshape(-1, output.shape[-1])
    labels = tokens[:, 1:].reshape(-1).astype(ms.int32)
    return ops.cross_entropy(logits, labels)


class ClippedAdamW:
    """AdamW that first scales all gradients down to a greatest global norm."""

    def __init__(self, groups, max_norm, **settings):
        self.inner = optim.AdamW(groups, **settings)
        self.parameters = self.inner.parameters
        self.max_norm = max_norm

    def __call__(self, gradients):
        norm = ops.sqrt(sum(ops.square(gradient).sum() for gradient in gradients))
        scale = ops.minimum(self.max_norm / (norm + 1e-6), 1.0)
        return self.inner(tuple(gradient * scale for gradient in gradients))


def optimizer(model):
    """Return AdamW, which decays matrices only and clips the global norm of the gradients."""
    parameters = model.trainable_params()
    decayed = [parameter for parameter in parameters if parameter.ndim > 1]
    not_decayed = [parameter for parameter in parameters if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    return ClippedAdamW(groups, MAX_GRADIENT_NORM, lr=3e-3, betas=(0.9, 0.95), eps=1e-6)
