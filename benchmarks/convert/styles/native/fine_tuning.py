"""Fine-tune a BERT encoder with MindSpore; an own AdamW, as nn.AdamWeightDecay corrects no bias."""

import argparse
import math

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal


def parse_args():
    parser = argparse.ArgumentParser(description="BERT fine-tuning")
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--vocabulary", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("-b", "--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each step")
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--warmup", type=float, default=0.1, help="share of the steps")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--freeze", action="store_true", help="leave the embeddings as they are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--init", default="", help="weights to start from")
    parser.add_argument("--save-init", default="", help="keep the first weights")
    parser.add_argument("--save", default="", help="where to keep the last weights")
    return parser.parse_args()


def make_samples(count, length, vocabulary, seed):
    """Sentences of different lengths, padded by 0; the class is that of the most frequent third."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, vocabulary, (count, length))
    ids[:, 0] = 1
    lengths = rng.integers(length // 2, length + 1, count)
    mask = np.arange(length) < lengths[:, None]
    ids = np.where(mask, ids, 0)
    thirds = (ids - 4) * 3 // (vocabulary - 4)
    votes = np.stack([((thirds == n) & mask & (ids >= 4)).sum(1) for n in range(3)], axis=1)
    return [part.astype(np.int32) for part in (ids, mask, votes.argmax(1))]


def batches(data, batch_size):
    for start in range(0, len(data[0]), batch_size):
        yield [ms.Tensor(part[start : start + batch_size]) for part in data]


def dense(in_channels, out_channels):
    return nn.Dense(in_channels, out_channels, weight_init=Normal(0.02), bias_init="zeros")


def embedding(count, hidden):
    return nn.Embedding(count, hidden, embedding_table=Normal(0.02))


class BertEmbeddings(nn.Cell):
    """A padding's row of words has no gradient, as nothing looks at a padding."""

    def __init__(self, vocabulary, hidden, length):
        super().__init__()
        self.word_embeddings = embedding(vocabulary, hidden)
        self.position_embeddings = embedding(length, hidden)
        self.token_type_embeddings = embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm((hidden,), epsilon=1e-12)

    def construct(self, input_ids):
        positions = self.position_embeddings.embedding_table[: input_ids.shape[1]]
        token_type = self.token_type_embeddings.embedding_table[0]
        return self.LayerNorm(self.word_embeddings(input_ids) + (positions + token_type))


class BertSelfAttention(nn.Cell):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(hidden // heads)
        self.query = dense(hidden, hidden)
        self.key = dense(hidden, hidden)
        self.value = dense(hidden, hidden)
        self.score = ops.BatchMatMul(transpose_b=True)
        self.mix = ops.BatchMatMul()

    def split(self, x):
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)

    def construct(self, hidden_states, attention_mask):
        query = self.split(self.query(hidden_states) * self.scale)
        key = self.split(self.key(hidden_states))
        value = self.split(self.value(hidden_states))
        probabilities = ops.softmax(self.score(query, key) + attention_mask, -1)
        context = self.mix(probabilities, value).transpose(0, 2, 1, 3)
        return context.reshape(hidden_states.shape)


class BertLayer(nn.Cell):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = BertSelfAttention(hidden, heads)
        self.attention_output = dense(hidden, hidden)
        self.attention_norm = nn.LayerNorm((hidden,), epsilon=1e-12)
        self.intermediate = dense(hidden, 4 * hidden)
        self.gelu = nn.GELU(approximate=False)
        self.output = dense(4 * hidden, hidden)
        self.output_norm = nn.LayerNorm((hidden,), epsilon=1e-12)

    def construct(self, hidden_states, attention_mask):
        attended = self.attention_output(self.attention(hidden_states, attention_mask))
        hidden_states = self.attention_norm(attended + hidden_states)
        output = self.output(self.gelu(self.intermediate(hidden_states)))
        return self.output_norm(output + hidden_states)


class BertForSequenceClassification(nn.Cell):
    """Devlin et al., 2018: norms behind the residual sums, a pooler on the first token."""

    def __init__(self, vocabulary=64, hidden=32, heads=4, layers=2, length=16, classes=3):
        super().__init__()
        self.embeddings = BertEmbeddings(vocabulary, hidden, length)
        self.layer = nn.CellList([BertLayer(hidden, heads) for _ in range(layers)])
        self.pooler = dense(hidden, hidden)
        self.classifier = dense(hidden, classes)

    def construct(self, input_ids, mask):
        extended = (1.0 - mask[:, None, None, :].astype(ms.float32)) * -10000.0
        hidden_states = self.embeddings(input_ids)
        for layer in self.layer:
            hidden_states = layer(hidden_states, extended)
        return self.classifier(ops.tanh(self.pooler(hidden_states[:, 0])))


class AdamW(nn.Optimizer):
    """The rule of torch: the fused kernel with the bias corrections in its rate, eps and decay."""

    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__(learning_rate, params)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self.parameters.clone("moment1", init="zeros")
        self.moments2 = self.parameters.clone("moment2", init="zeros")
        self.update = ops.AdamWeightDecay()

    def construct(self, grads):
        lr, decays = self.get_lr(), self.get_weight_decay()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = self.global_step.reshape(()).astype(ms.float32)
        root = ops.sqrt(1 - ops.pow(self.beta2, step))
        ratio = root / (1 - ops.pow(self.beta1, step))
        for p, m, v, decay, g in zip(self.parameters, self.moments1, self.moments2, decays, grads):
            self.update(
                p, m, v, lr * ratio, self.beta1, self.beta2, self.eps * root, decay / ratio, g
            )


def learning_rates(lr, steps, warmup):
    rising = max(1, int(steps * warmup))
    rates = [lr * (step + 1) / rising for step in range(min(rising, steps))]
    falling = [(steps - step) / max(1, steps - rising) for step in range(rising, steps)]
    return rates + [lr * factor for factor in falling]


def make_steps(model, optimizer, accumulate):
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    sums = optimizer.parameters.clone("sum", init="zeros")
    l2_loss = ops.L2Loss()

    def forward_fn(input_ids, mask, labels):
        return loss_fn(model(input_ids, mask), labels) / accumulate

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    def clip_by_norm(grads, max_norm):
        """Scales the gradients as torch does; L2Loss sums the squares in one kernel."""
        norm = ops.sqrt(2 * ops.addn([l2_loss(g) for g in grads]))
        scale = ops.clamp(max_norm / (norm + 1e-6), max=1.0)
        return tuple([g * scale for g in grads])

    @ms.jit
    def train_step(input_ids, mask, labels, first, last):
        """A batch; first and last of those that are accumulated are known when it is compiled."""
        loss, grads = grad_fn(input_ids, mask, labels)
        if not first:
            grads = tuple([s + g for s, g in zip(sums, grads)])
        if last:
            optimizer(clip_by_norm(grads, 1.0))
        else:
            for s, g in zip(sums, grads):
                ops.assign(s, g)
        return loss

    def eval_step(input_ids, mask, labels):
        """The number of samples whose class is found."""
        return (model(input_ids, mask).argmax(-1) == labels).sum()

    return train_step, eval_step


def train(model, train_step, training, epoch, args):
    model.set_train()
    for number, batch in enumerate(batches(training, args.batch_size)):
        first = number % args.accumulate == 0
        last = (number + 1) % args.accumulate == 0
        loss = train_step(*batch, first, last).item()
        print(f"epoch {epoch} batch {number} loss {loss:.6f}")


def evaluate(model, eval_step, held_out, args):
    model.set_train(False)
    right = sum(eval_step(*batch).item() for batch in batches(held_out, args.batch_size))
    return right / len(held_out[0])


def main():
    args = parse_args()
    ms.set_seed(args.seed)
    data = make_samples(args.samples, args.length, args.vocabulary, args.seed)
    cut = args.samples * 3 // 4
    training, held_out = [part[:cut] for part in data], [part[cut:] for part in data]
    model = BertForSequenceClassification(
        args.vocabulary, args.hidden, args.heads, args.layers, args.length
    )
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)
    if args.freeze:
        for parameter in model.embeddings.get_parameters():
            parameter.requires_grad = False
    no_decay = ("bias", "gamma", "beta")
    params = model.trainable_params()
    groups = [
        {
            "params": [p for p in params if not p.name.endswith(no_decay)],
            "weight_decay": args.weight_decay,
        },
        {"params": [p for p in params if p.name.endswith(no_decay)], "weight_decay": 0.0},
    ]
    steps = args.epochs * (math.ceil(cut / args.batch_size) // args.accumulate)
    optimizer = AdamW(groups, learning_rates(args.lr, steps, args.warmup))
    train_step, eval_step = make_steps(model, optimizer, args.accumulate)
    for epoch in range(args.epochs):
        train(model, train_step, training, epoch, args)
        print(f"epoch {epoch} accuracy {evaluate(model, eval_step, held_out, args):.6f}")
    if args.save:
        ms.save_checkpoint(model, args.save)


if __name__ == "__main__":
    main()
