"""Train a GPT to sort digits as ../mingpt.py does, written for MindSpore.

nn.AdamWeightDecay corrects no bias, so that the losses follow those of AdamW loosely.
"""
import argparse
import math
import pickle
import time
import zlib

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal

SIZES = {
    'gpt-mini': {'n_layer': 6, 'n_head': 6, 'n_embd': 192},
    'gpt-micro': {'n_layer': 4, 'n_head': 4, 'n_embd': 128},
    'gpt-nano': {'n_layer': 3, 'n_head': 3, 'n_embd': 48},
}


class NewGELU(nn.Cell):
    """The tanh form of GELU by way of the sigmoid: on the CPU much faster than nn.GELU's kernel."""

    def construct(self, x):
        return x * ops.sigmoid(2 * math.sqrt(2.0 / math.pi) * x * (1 + 0.044715 * x * x))


class CausalSelfAttention(nn.Cell):

    def __init__(self, n_layer, n_head, n_embd):
        super().__init__()
        self.n_embd = n_embd
        self.n_head = n_head
        self.scale = 1.0 / math.sqrt(n_embd // n_head)
        self.c_attn = nn.Dense(n_embd, 3 * n_embd, Normal(0.02), 'zeros')
        self.c_proj = nn.Dense(n_embd, n_embd, Normal(0.02 / math.sqrt(2 * n_layer)), 'zeros')
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.weigh = ops.BatchMatMul()

    def construct(self, x, mask):
        B, T, C = x.shape
        q, k, v = ops.split(self.c_attn(x), self.n_embd, axis=2)
        q = (q * self.scale).view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        k = k.view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        v = v.view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        att = ops.softmax(self.scores(q, k) + mask, axis=-1)
        return self.c_proj(self.weigh(att, v).transpose(0, 2, 1, 3).reshape(B, T, C))


class MLP(nn.Cell):

    def __init__(self, n_layer, n_embd):
        super().__init__()
        self.c_fc = nn.Dense(n_embd, 4 * n_embd, Normal(0.02), 'zeros')
        self.act = NewGELU()
        self.c_proj = nn.Dense(4 * n_embd, n_embd, Normal(0.02 / math.sqrt(2 * n_layer)), 'zeros')

    def construct(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class Block(nn.Cell):

    def __init__(self, n_layer, n_head, n_embd):
        super().__init__()
        self.ln_1 = nn.LayerNorm((n_embd,), epsilon=1e-5)
        self.attn = CausalSelfAttention(n_layer, n_head, n_embd)
        self.ln_2 = nn.LayerNorm((n_embd,), epsilon=1e-5)
        self.mlp = MLP(n_layer, n_embd)

    def construct(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Cell):

    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd, embedding_table=Normal(0.02))
        self.wpe = nn.Embedding(block_size, n_embd, embedding_table=Normal(0.02))
        self.h = nn.CellList([Block(n_layer, n_head, n_embd) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm((n_embd,), epsilon=1e-5)
        # added to the scores, so that attention is only applied to the left in the sequence
        self.mask = ms.Tensor(np.triu(np.full((block_size, block_size), -1e9, np.float32), 1))

    def construct(self, idx):
        T = idx.shape[1]
        x = self.wte(idx) + self.wpe.embedding_table[:T]
        mask = self.mask[:T, :T]
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x)


class GPT(nn.Cell):

    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd):
        super().__init__()
        self.block_size = block_size
        self.transformer = Transformer(vocab_size, block_size, n_layer, n_head, n_embd)
        self.lm_head = nn.Dense(n_embd, vocab_size, Normal(0.02), has_bias=False)

    def construct(self, idx):
        return self.lm_head(self.transformer(idx))

    def generate(self, idx, max_new_tokens):
        """Completes the sequences idx (b, t) with the most likely tokens."""
        for _ in range(max_new_tokens):
            logits = self(ms.Tensor(idx[:, -self.block_size:]))
            idx_next = logits[:, -1].asnumpy().argmax(-1).astype(np.int32)
            idx = np.concatenate([idx, idx_next[:, None]], 1)
        return idx


def sort_dataset(split, size, length, num_digits):
    """Sequences of digits, each followed by its digits in order, as inputs and targets."""
    rng = np.random.RandomState(3407)
    inputs = []
    while len(inputs) < size:
        inp = rng.randint(0, num_digits, length)
        # figure out if this generated example is train or test based on its hash
        h = zlib.crc32(pickle.dumps(inp.tolist()))
        if ('test' if h % 4 == 0 else 'train') == split:
            inputs.append(inp)
    inputs = np.array(inputs, np.int32)
    cat = np.concatenate([inputs, np.sort(inputs, 1)], 1)
    x, y = cat[:, :-1], cat[:, 1:].copy()
    # we only want to predict at output locations, mask out the loss at the input locations
    y[:, :length-1] = -1
    return x, y


l2_loss = ops.L2Loss()


def clip_by_norm(grads, max_norm):
    """Scales the gradients as torch does; L2Loss sums the squares in one kernel."""
    norm = ops.sqrt(2 * ops.addn([l2_loss(g) for g in grads]))
    scale = ops.clamp(max_norm / (norm + 1e-6), max=1.0)
    return tuple([g * scale for g in grads])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--model-type', default='gpt-micro', choices=list(SIZES))
    parser.add_argument('--length', type=int, default=8, help='digits in a sequence')
    parser.add_argument('--num-digits', type=int, default=6, help='different digits')
    parser.add_argument('--examples', type=int, default=3200, help='sequences to train on')
    parser.add_argument('--batch-size', type=int, default=32)
    parser.add_argument('--learning-rate', type=float, default=5e-4)
    parser.add_argument('--shuffle', action='store_true')
    parser.add_argument('--init', default=None, help='file of weights to start from')
    parser.add_argument('--save-init', default=None, help='file to save the first weights to')
    parser.add_argument('--save', default=None, help='file to save the trained weights to')
    args = parser.parse_args()
    ms.set_seed(3407)

    train = sort_dataset('train', args.examples, args.length, args.num_digits)
    test = sort_dataset('test', 320, args.length, args.num_digits)

    model = GPT(args.num_digits, 2 * args.length - 1, **SIZES[args.model_type])
    n_params = sum(p.size for p in model.transformer.trainable_params())
    print("number of parameters: %.2fM" % (n_params / 1e6))
    if args.init:
        ms.load_checkpoint(args.init, model)
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)

    # only the weights of the dense layers decay
    params = model.trainable_params()
    decayed = [p for p in params if p.name.endswith('.weight')]
    others = [p for p in params if not p.name.endswith('.weight')]
    optimizer = nn.AdamWeightDecay(
        [{'params': decayed, 'weight_decay': 0.1}, {'params': others, 'weight_decay': 0.0},
         {'order_params': params}],
        learning_rate=args.learning_rate, beta1=0.9, beta2=0.95, eps=1e-8)

    def forward_fn(x, y):
        logits = model(x)
        return ops.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1), ignore_index=-1)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(clip_by_norm(grads, 1.0))
        return loss

    def eval_split(split, x, y, max_batches):
        n = args.length
        x, y = x[:100 * max_batches], y[:100 * max_batches]
        correct = [
            (model.generate(x[i:i+100, :n], n)[:, n:] == y[i:i+100, -n:]).all(1)
            for i in range(0, len(x), 100)]
        correct = np.concatenate(correct)
        print("%s final score: %d/%d = %.2f%% correct"
              % (split, correct.sum(), len(correct), 100 * correct.mean()))

    iter_num = 0
    iter_dt = 0.0
    iter_time = time.time()
    for _ in range(args.epochs):
        model.set_train()
        order = np.arange(args.examples)
        if args.shuffle:
            np.random.shuffle(order)
        for start in range(0, args.examples, args.batch_size):
            rows = order[start:start+args.batch_size]
            loss = train_step(ms.Tensor(train[0][rows]), ms.Tensor(train[1][rows])).item()
            if iter_num % 5 == 0:
                print(f"iter_dt {iter_dt * 1000:.2f}ms; iter {iter_num}: train loss {loss:.6f}")
            iter_num += 1
            tnow = time.time()
            iter_dt = tnow - iter_time
            iter_time = tnow
        model.set_train(False)
        eval_split('train', *train, max_batches=3)
        eval_split('test', *test, max_batches=3)

    if args.save:
        ms.save_checkpoint(model, args.save)


if __name__ == '__main__':
    main()
