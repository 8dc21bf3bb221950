"""Train an MLP-Mixer in MindSpore; nn.Adam's epsilon is applied slightly differently to torch's."""

import math
import os
from argparse import ArgumentParser

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class MlpBlock(nn.Cell):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Dense(dim, hidden_dim)
        self.act = nn.GELU(approximate=False)
        self.fc2 = nn.Dense(hidden_dim, dim)

    def construct(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Cell):
    def __init__(self, dim, num_patches, token_dim, channel_dim):
        super().__init__()
        self.norm1 = nn.LayerNorm((dim,), epsilon=1e-5)
        self.token_mix = MlpBlock(num_patches, token_dim)
        self.norm2 = nn.LayerNorm((dim,), epsilon=1e-5)
        self.channel_mix = MlpBlock(dim, channel_dim)

    def construct(self, x):
        x = x + self.token_mix(self.norm1(x).swapaxes(1, 2)).swapaxes(1, 2)
        return x + self.channel_mix(self.norm2(x))


class MlpMixer(nn.Cell):
    def __init__(self, num_classes, image_size, patch_size, dim, depth, token_dim, channel_dim):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_embed = nn.Conv2d(
            3, dim, patch_size, stride=patch_size, pad_mode="valid", has_bias=True
        )
        self.blocks = nn.SequentialCell(
            *[MixerBlock(dim, num_patches, token_dim, channel_dim) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.head = nn.Dense(dim, num_classes)

    def construct(self, x):
        x = self.patch_embed(x).flatten(start_dim=2).swapaxes(1, 2)
        x = self.norm(self.blocks(x)).mean(1)
        return self.head(x)


class LitMixer(nn.Cell):
    def __init__(
        self,
        num_classes=10,
        image_size=32,
        patch_size=4,
        dim=128,
        depth=4,
        token_dim=64,
        channel_dim=256,
    ):
        super().__init__()
        self.model = MlpMixer(
            num_classes, image_size, patch_size, dim, depth, token_dim, channel_dim
        )

    def construct(self, x):
        return self.model(x)


def learning_rates(lr, warmup_steps, total_steps):
    rates = []
    for step in range(total_steps):
        if step < warmup_steps:
            rates.append(lr * (step + 1) / warmup_steps)
        else:
            progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
            rates.append(lr * 0.5 * (1.0 + math.cos(math.pi * progress)))
    return rates


def make_dataset(num_samples, num_classes, image_size, seed):
    """Each class is a smooth wave with a colour; position and noise vary."""
    rng = np.random.RandomState(1234)
    grid = np.arange(image_size) / image_size
    freq = rng.uniform(-3, 3, (num_classes, 2, 1, 1))
    colour = rng.randn(num_classes, 3, 1, 1)
    rng = np.random.RandomState(seed)
    y = rng.randint(0, num_classes, num_samples)
    phase = rng.uniform(0, 1, (num_samples, 1, 1))
    wave = np.sin(2 * np.pi * (freq[y, 0] * grid[:, None] + freq[y, 1] * grid + phase))
    x = wave[:, None] * colour[y] + 2.0 * rng.randn(num_samples, 3, image_size, image_size)
    return x.astype(np.float32), y.astype(np.int32)


def batches(data, batch_size, shuffle=False):
    x, y = data
    order = np.random.permutation(len(y)) if shuffle else np.arange(len(y))
    for start in range(0, len(y), batch_size):
        index = order[start : start + batch_size]
        yield ms.Tensor(x[index]), ms.Tensor(y[index])


def validate(model, val_set, batch_size, epoch):
    model.set_train(False)
    losses, accs = [], []
    for x, y in batches(val_set, batch_size):
        logits = model(x)
        losses.append(float(ops.cross_entropy(logits, y).asnumpy()))
        accs.append((logits.asnumpy().argmax(1) == y.asnumpy()).mean())
    print(f"Epoch {epoch}: val_loss {np.mean(losses):.6f} val_acc {np.mean(accs):.4f}")


def cli_main():
    parser = ArgumentParser()
    parser.add_argument("--max_epochs", "--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--train_size", type=int, default=1920)
    parser.add_argument("--val_size", type=int, default=320)
    parser.add_argument("--gradient_clip_val", type=float, default=1.0)
    parser.add_argument("--log_every_n_steps", type=int, default=5)
    parser.add_argument("--default_root_dir", type=str, default=None)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--init", type=str, default=None)
    parser.add_argument("--save-init", type=str, default=None)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--warmup_steps", type=int, default=10)
    args = parser.parse_args()
    ms.set_seed(args.seed)

    # data
    train_set = make_dataset(args.train_size, num_classes=10, image_size=32, seed=0)
    val_set = make_dataset(args.val_size, num_classes=10, image_size=32, seed=1)
    num_batches = math.ceil(args.train_size / args.batch_size)

    # model
    model = LitMixer(dim=args.dim, depth=args.depth)
    if args.init is not None:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init is not None:
        ms.save_checkpoint(model, args.save_init)

    # training
    optimizer = nn.Adam(
        model.trainable_params(),
        learning_rate=learning_rates(args.lr, args.warmup_steps, args.max_epochs * num_batches),
    )

    def forward_fn(x, y):
        return ops.cross_entropy(model(x), y)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        if args.gradient_clip_val is not None:
            grads = ops.clip_by_global_norm(grads, args.gradient_clip_val)
        optimizer(grads)
        return loss

    global_step = 0
    for epoch in range(args.max_epochs):
        model.set_train()
        for batch_idx, (x, y) in enumerate(batches(train_set, args.batch_size, args.shuffle)):
            loss = train_step(x, y)
            if global_step % args.log_every_n_steps == 0:
                value = float(loss.asnumpy())
                print(f"Epoch {epoch}: [{batch_idx}/{num_batches}] train_loss {value:.6f}")
            global_step += 1
        validate(model, val_set, args.batch_size, epoch)
        if args.default_root_dir is not None:
            os.makedirs(args.default_root_dir, exist_ok=True)
            name = f"epoch={epoch}-step={global_step}.ckpt"
            # the optimizer holds the parameters, their moments and the step
            ms.save_checkpoint(optimizer, os.path.join(args.default_root_dir, name))


if __name__ == "__main__":
    cli_main()
