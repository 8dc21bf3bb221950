"""Train a transformer language model with MindSpore; an own AdamW, as nn's corrects no bias."""

import argparse
import math
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Uniform

TEXT = (
    "the quick brown fox jumps over the lazy dog . the lazy dog sleeps in the sun . "
    "a small bird sings on the old tree while the quick fox runs through the green grass . "
)


def parse_args():
    parser = argparse.ArgumentParser(description="Transformer language model")
    parser.add_argument("--data", default="", help="a text file; without it a text of a few words")
    parser.add_argument("--emsize", type=int, default=32)
    parser.add_argument("--nhead", type=int, default=4)
    parser.add_argument("--nhid", type=int, default=64)
    parser.add_argument("--nlayers", type=int, default=2)
    parser.add_argument("--tied", action="store_true", help="tie the embedding and the decoder")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.98))
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--warmup", type=int, default=10, help="steps of rising rate")
    parser.add_argument("--clip", type=float, default=0.5, help="greatest norm of the gradients")
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each step")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1111)
    parser.add_argument("--log-interval", type=int, default=1)
    parser.add_argument("--init", default="", help="weights to start from")
    parser.add_argument("--save-init", default="", help="keep the first weights")
    parser.add_argument("--save", default="", help="where to keep the best weights")
    return parser.parse_args()


class Corpus:
    def __init__(self, text):
        words = {}
        ids = np.array([words.setdefault(word, len(words)) for word in text.split()], np.int32)
        split = int(0.9 * len(ids))
        self.ntokens = len(words)
        self.train, self.valid = ids[:split], ids[split:]


def position_table(d_model, max_len=512):
    """Sines and cosines of several frequencies."""
    position = np.arange(max_len, dtype=np.float32)[:, None]
    div_term = np.exp(np.arange(0, d_model, 2, dtype=np.float32) * (-math.log(10000.0) / d_model))
    table = np.zeros((max_len, d_model), np.float32)
    table[:, 0::2] = np.sin(position * div_term)
    table[:, 1::2] = np.cos(position * div_term)
    return table


class SelfAttention(nn.Cell):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.d_model = d_model
        self.nhead = nhead
        self.scale = 1 / math.sqrt(d_model // nhead)
        self.qkv = nn.Dense(d_model, 3 * d_model)
        self.proj = nn.Dense(d_model, d_model)
        self.score = ops.BatchMatMul(transpose_b=True)
        self.mix = ops.BatchMatMul()

    def heads(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, self.nhead, -1).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        q, k, v = ops.split(self.qkv(x), self.d_model, axis=2)
        scores = self.score(self.heads(q * self.scale), self.heads(k)) + mask
        out = self.mix(ops.softmax(scores, -1), self.heads(v))
        return self.proj(out.transpose(0, 2, 1, 3).reshape(x.shape))


class Block(nn.Cell):
    def __init__(self, d_model, nhead, nhid):
        super().__init__()
        self.norm1 = nn.LayerNorm((d_model,), epsilon=1e-5)
        self.attention = SelfAttention(d_model, nhead)
        self.norm2 = nn.LayerNorm((d_model,), epsilon=1e-5)
        self.mlp = nn.SequentialCell(
            nn.Dense(d_model, nhid), nn.GELU(approximate=False), nn.Dense(nhid, d_model)
        )

    def construct(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class TransformerModel(nn.Cell):
    """Embedding, blocks of masked attention, a decoder over all words."""

    def __init__(self, ntoken, d_model=32, nhead=4, nhid=64, nlayers=2, tied=False, max_len=512):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.encoder = nn.Embedding(ntoken, d_model, embedding_table=Uniform(0.1))
        self.layers = nn.CellList([Block(d_model, nhead, nhid) for _ in range(nlayers)])
        self.norm = nn.LayerNorm((d_model,), epsilon=1e-5)
        self.decoder = nn.Dense(d_model, ntoken, weight_init=Uniform(0.1), has_bias=False)
        if tied:
            self.decoder.weight = self.encoder.embedding_table
        self.positions = ms.Tensor(position_table(d_model, max_len))
        # added to the scores, so that attention is only applied to the left in the sequence
        self.mask = ms.Tensor(np.triu(np.full((max_len, max_len), -1e9, np.float32), 1))

    def construct(self, src):
        length = src.shape[1]
        mask = self.mask[:length, :length]
        x = self.encoder(src) * self.scale + self.positions[:length]
        for layer in self.layers:
            x = layer(x, mask)
        return self.decoder(self.norm(x))


class AdamW(nn.Optimizer):
    """The rule of torch: the fused kernel with the bias corrections in its rate, eps and decay."""

    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self.parameters.clone("moment1", init="zeros")
        self.moments2 = self.parameters.clone("moment2", init="zeros")
        self.update = ops.AdamWeightDecay()

    def construct(self, grads):
        lr, decay = self.get_lr(), self.get_weight_decay()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = self.global_step.reshape(()).astype(ms.float32)
        root = ops.sqrt(1 - ops.pow(self.beta2, step))
        ratio = root / (1 - ops.pow(self.beta1, step))
        for p, m, v, g in zip(self.parameters, self.moments1, self.moments2, grads):
            self.update(
                p, m, v, lr * ratio, self.beta1, self.beta2, self.eps * root, decay / ratio, g
            )


def batchify(data, bsz):
    """Cut the text into bsz rows; what is left over at its end is dropped."""
    return data[: len(data) // bsz * bsz].reshape(bsz, -1)


def get_batch(source, i, bptt):
    seq_len = min(bptt, source.shape[1] - 1 - i)
    data = source[:, i : i + seq_len]
    target = source[:, i + 1 : i + 1 + seq_len].reshape(-1)
    return ms.Tensor(data), ms.Tensor(target)


def learning_rates(args, steps):
    """A linear warm-up, then the inverse of the root of the step."""
    rising = [(step + 1) / args.warmup for step in range(min(args.warmup, steps))]
    falling = [(args.warmup / (step + 1)) ** 0.5 for step in range(args.warmup, steps)]
    return [args.lr * factor for factor in rising + falling]


def make_steps(model, optimizer, args):
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    sums = optimizer.parameters.clone("sum", init="zeros")
    l2_loss = ops.L2Loss()

    def forward_fn(data, targets):
        output = model(data)
        return loss_fn(output.view(-1, output.shape[-1]), targets) / args.accumulate

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    def norm_of(grads):
        """L2Loss sums the squares in one kernel."""
        return ops.sqrt(2 * ops.addn([l2_loss(g) for g in grads]))

    @ms.jit
    def train_step(data, targets, first, last):
        """A batch; first and last of those that are accumulated are known when it is compiled."""
        loss, grads = grad_fn(data, targets)
        if not first:
            grads = tuple([s + g for s, g in zip(sums, grads)])
        norm = ops.zeros((), ms.float32)
        if last:
            norm = norm_of(grads)
            scale = ops.clamp(args.clip / (norm + 1e-6), max=1.0)
            optimizer(tuple([g * scale for g in grads]))
        else:
            for s, g in zip(sums, grads):
                ops.assign(s, g)
        return loss * args.accumulate, norm

    def eval_step(data, targets):
        return forward_fn(data, targets) * args.accumulate

    return train_step, eval_step


def evaluate(model, eval_step, source, bptt):
    model.set_train(False)
    total_loss = 0.0
    for i in range(0, source.shape[1] - 1, bptt):
        data, targets = get_batch(source, i, bptt)
        total_loss += data.shape[1] * eval_step(data, targets).item()
    return total_loss / (source.shape[1] - 1)


def train(model, train_step, source, rates, updates, epoch, args):
    """An epoch; the number of updates up to its end."""
    model.set_train()
    total_loss = 0.0
    start_time = time.time()
    for batch, i in enumerate(range(0, source.shape[1] - 1, args.bptt)):
        data, targets = get_batch(source, i, args.bptt)
        first = batch % args.accumulate == 0
        last = (batch + 1) % args.accumulate == 0
        loss, norm = train_step(data, targets, first, last)
        total_loss += loss.item()
        if last:
            updates += 1
            print(f"norm {norm.item():.6f} lr {rates[updates]:.8f}")

        if batch % args.log_interval == 0:
            cur_loss = total_loss / args.log_interval
            elapsed = time.time() - start_time
            print(
                f"| epoch {epoch:3d} | batch {batch:5d} | ms {elapsed * 1000:5.2f} "
                f"| loss {cur_loss:.6f} | ppl {math.exp(cur_loss):8.2f}"
            )
            total_loss = 0
            start_time = time.time()
    return updates


def main():
    args = parse_args()
    ms.set_seed(args.seed)
    text = TEXT * 60
    if args.data:
        with open(args.data, encoding="utf-8") as file:
            text = file.read()
    corpus = Corpus(text)
    train_data = batchify(corpus.train, args.batch_size)
    val_data = batchify(corpus.valid, args.batch_size)

    model = TransformerModel(
        corpus.ntokens, args.emsize, args.nhead, args.nhid, args.nlayers, args.tied
    )
    if args.init:
        weights = ms.load_checkpoint(args.init)
        if "encoder.weight" in weights:  # the name it has in torch
            weights["encoder.embedding_table"] = weights.pop("encoder.weight")
        ms.load_param_into_net(model, weights, strict_load=True)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)

    batches = math.ceil((train_data.shape[1] - 1) / args.bptt)
    rates = learning_rates(args, args.epochs * (batches // args.accumulate) + 1)
    optimizer = AdamW(model.trainable_params(), rates, *args.betas, weight_decay=args.weight_decay)
    train_step, eval_step = make_steps(model, optimizer, args)

    best_val_loss = None
    updates = 0
    for epoch in range(1, args.epochs + 1):
        updates = train(model, train_step, train_data, rates, updates, epoch, args)
        val_loss = evaluate(model, eval_step, val_data, args.bptt)
        print(
            f"| end of epoch {epoch:3d} | valid loss {val_loss:.6f} | ppl {math.exp(val_loss):8.2f}"
        )
        if best_val_loss is None or val_loss < best_val_loss:
            best_val_loss = val_loss
            if args.save:
                ms.save_checkpoint(model, args.save)


if __name__ == "__main__":
    main()
