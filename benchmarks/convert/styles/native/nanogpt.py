"""Train a small GPT on characters as ../nanogpt.py does, written for MindSpore.

nn.AdamWeightDecay corrects no bias, so that the losses follow those of AdamW loosely.
"""
import argparse
import math
import os
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal

parser = argparse.ArgumentParser()
parser.add_argument('--out-dir', default='out')
parser.add_argument('--epochs', type=int, default=3, help='of eval-interval iterations each')
parser.add_argument('--eval-interval', type=int, default=60)
parser.add_argument('--log-interval', type=int, default=1)
parser.add_argument('--eval-iters', type=int, default=10)
parser.add_argument('--always-save-checkpoint', action='store_true')
parser.add_argument('--init', default='', help='path of weights to start from')
parser.add_argument('--save-init', default='', help='path to save the first weights')
parser.add_argument('--num-chars', type=int, default=100000)
parser.add_argument('--gradient-accumulation-steps', type=int, default=2)
parser.add_argument('--batch-size', type=int, default=8)
parser.add_argument('--block-size', type=int, default=64)
parser.add_argument('--n-layer', type=int, default=4)
parser.add_argument('--n-head', type=int, default=4)
parser.add_argument('--n-embd', type=int, default=128)
parser.add_argument('--dropout', type=float, default=0.0)
parser.add_argument('--bias', action='store_true', help='biases inside LayerNorm and Dense layers')
parser.add_argument('--learning-rate', type=float, default=1e-3)
parser.add_argument('--weight-decay', type=float, default=1e-1)
parser.add_argument('--beta1', type=float, default=0.9)
parser.add_argument('--beta2', type=float, default=0.99)
parser.add_argument('--grad-clip', type=float, default=1.0, help='0.0 disables it')
parser.add_argument('--decay-lr', action=argparse.BooleanOptionalAction, default=True)
parser.add_argument('--warmup-iters', type=int, default=10)
parser.add_argument('--min-lr', type=float, default=1e-4)
parser.add_argument('--seed', type=int, default=1337)


class CausalSelfAttention(nn.Cell):

    def __init__(self, config):
        super().__init__()
        self.n_embd = config.n_embd
        self.n_head = config.n_head
        self.scale = 1.0 / math.sqrt(config.n_embd // config.n_head)
        self.c_attn = nn.Dense(config.n_embd, 3 * config.n_embd, Normal(0.02), 'zeros', config.bias)
        self.c_proj = nn.Dense(config.n_embd, config.n_embd,
                               Normal(0.02 / math.sqrt(2 * config.n_layer)), 'zeros', config.bias)
        self.attn_dropout = nn.Dropout(p=config.dropout)
        self.resid_dropout = nn.Dropout(p=config.dropout)
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.weigh = ops.BatchMatMul()

    def construct(self, x, mask):
        B, T, C = x.shape
        q, k, v = ops.split(self.c_attn(x), self.n_embd, axis=2)
        q = (q * self.scale).view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        k = k.view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        v = v.view(B, T, self.n_head, -1).transpose(0, 2, 1, 3)
        att = ops.softmax(self.scores(q, k) + mask, axis=-1)
        y = self.weigh(self.attn_dropout(att), v)
        return self.resid_dropout(self.c_proj(y.transpose(0, 2, 1, 3).reshape(B, T, C)))


class MLP(nn.Cell):

    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Dense(config.n_embd, 4 * config.n_embd, Normal(0.02), 'zeros', config.bias)
        self.gelu = nn.GELU(approximate=False)
        self.c_proj = nn.Dense(4 * config.n_embd, config.n_embd,
                               Normal(0.02 / math.sqrt(2 * config.n_layer)), 'zeros', config.bias)
        self.dropout = nn.Dropout(p=config.dropout)

    def construct(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Cell):

    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm((config.n_embd,), epsilon=1e-5)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm((config.n_embd,), epsilon=1e-5)
        self.mlp = MLP(config)

    def construct(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Cell):

    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd, embedding_table=Normal(0.02))
        self.wpe = nn.Embedding(config.block_size, config.n_embd, embedding_table=Normal(0.02))
        self.drop = nn.Dropout(p=config.dropout)
        self.h = nn.CellList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm((config.n_embd,), epsilon=1e-5)
        # added to the scores, so that attention is only applied to the left in the sequence
        self.mask = ms.Tensor(np.triu(np.full((config.block_size,) * 2, -1e9, np.float32), 1))

    def construct(self, idx):
        T = idx.shape[1]
        x = self.drop(self.wte(idx) + self.wpe.embedding_table[:T])
        mask = self.mask[:T, :T]
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x)


class GPT(nn.Cell):

    def __init__(self, config):
        super().__init__()
        self.transformer = Transformer(config)
        self.loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean')
        if not config.bias:
            for p in self.get_parameters():
                p.requires_grad = not p.name.endswith('beta')

    def construct(self, idx, targets):
        # the weights of the head are those of the embedding
        x = self.transformer(idx)
        logits = ops.dense(x.view(-1, x.shape[-1]), self.transformer.wte.embedding_table)
        return logits, self.loss_fn(logits, targets.view(-1))


config = parser.parse_args()
max_iters = config.epochs * config.eval_interval
accumulate = config.gradient_accumulation_steps
os.makedirs(config.out_dir, exist_ok=True)
ms.set_seed(config.seed)

# prepare the data: words of a small lexicon, the common ones first, as in any text
rng = np.random.RandomState(config.seed)
lexicon = [''.join(rng.choice(list('abcdefghijklmnopqrstuvwxyz'), rng.randint(2, 8)))
           for _ in range(300)]
text = ' '.join(lexicon[i] for i in (300 * rng.rand(config.num_chars // 4) ** 2).astype(int))
text = text[:config.num_chars]
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
ids = np.array([stoi[ch] for ch in text], dtype=np.int32)
train_data, val_data = ids[:int(len(ids) * 0.9)], ids[int(len(ids) * 0.9):]
config.vocab_size = len(chars)


def get_batch(split):
    data = train_data if split == 'train' else val_data
    ix = rng.randint(0, len(data) - config.block_size, config.batch_size)
    x = np.stack([data[i:i+config.block_size] for i in ix])
    y = np.stack([data[i+1:i+1+config.block_size] for i in ix])
    return x, y


def get_lr(it):
    """Cosine with warmup."""
    if it < config.warmup_iters:
        return config.learning_rate * (it + 1) / (config.warmup_iters + 1)
    decay_ratio = (it - config.warmup_iters) / (max_iters - config.warmup_iters)
    coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
    return config.min_lr + coeff * (config.learning_rate - config.min_lr)


model = GPT(config)
print("number of parameters: %.2fM" % (sum(p.size for p in model.trainable_params()) / 1e6))
if config.init:
    ms.load_checkpoint(config.init, model)
if config.save_init:
    ms.save_checkpoint(model, config.save_init)

params = model.trainable_params()
lrs = [get_lr(i) if config.decay_lr else config.learning_rate for i in range(max_iters + 1)]
optimizer = nn.AdamWeightDecay(
    [{'params': [p for p in params if p.ndim >= 2], 'weight_decay': config.weight_decay},
     {'params': [p for p in params if p.ndim < 2], 'weight_decay': 0.0},
     {'order_params': params}],
    learning_rate=lrs, beta1=config.beta1, beta2=config.beta2, eps=1e-8)


def forward_fn(x, y):
    return model(x, y)[1] / accumulate


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)
hyper_map = ops.HyperMap()
l2_loss = ops.L2Loss()


def clip_by_norm(grads, max_norm):
    """Scales the gradients as torch does; L2Loss sums the squares in one kernel."""
    norm = ops.sqrt(2 * ops.addn([l2_loss(g) for g in grads]))
    scale = ops.clamp(max_norm / (norm + 1e-6), max=1.0)
    return tuple([g * scale for g in grads])


@ms.jit
def train_step(xs, ys):
    loss, grads = grad_fn(xs[0], ys[0])
    for i in range(1, accumulate):
        loss, more = grad_fn(xs[i], ys[i])
        grads = hyper_map(ops.add, grads, more)
    if config.grad_clip != 0.0:
        grads = clip_by_norm(grads, config.grad_clip)
    optimizer(grads)
    return loss * accumulate


def estimate_loss():
    out = {}
    model.set_train(False)
    for split in ['train', 'val']:
        batches = [get_batch(split) for _ in range(config.eval_iters)]
        out[split] = np.mean([model(ms.Tensor(x), ms.Tensor(y))[1].item() for x, y in batches])
    model.set_train()
    return out


best_val_loss = 1e9
batch = get_batch('train')
t0 = time.time()
for iter_num in range(max_iters + 1):
    # evaluate the loss on train/val sets and write checkpoints
    if iter_num % config.eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.6f}, val loss {losses['val']:.6f}")
        if losses['val'] < best_val_loss or config.always_save_checkpoint:
            best_val_loss = losses['val']
            if iter_num > 0:
                print(f"saving checkpoint to {config.out_dir}")
                ms.save_checkpoint(model, os.path.join(config.out_dir, 'ckpt.ckpt'))

    batches = [batch] + [get_batch('train') for _ in range(accumulate - 1)]
    xs, ys = (ms.Tensor(np.stack(part)) for part in zip(*batches, strict=True))
    loss = train_step(xs, ys)
    batch = get_batch('train')

    t1 = time.time()
    dt = t1 - t0
    t0 = t1
    if iter_num % config.log_interval == 0:
        print(f"iter {iter_num}: loss {loss.item():.6f}, time {dt*1000:.2f}ms")
