"""Train an MLP-Mixer, in the form of a LightningModule with a small trainer of its own."""

import inspect
import math
import os
from argparse import ArgumentParser, Namespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LightningModule(nn.Module):
    """The hooks that a Trainer calls."""

    def __init__(self):
        super().__init__()
        self.trainer = None
        self.hparams = Namespace()

    def save_hyperparameters(self):
        init_args = inspect.currentframe().f_back.f_locals
        names = [n for n in inspect.signature(type(self).__init__).parameters if n != "self"]
        self.hparams = Namespace(**{name: init_args[name] for name in names})

    @property
    def current_epoch(self):
        return self.trainer.current_epoch

    @property
    def global_step(self):
        return self.trainer.global_step

    def log(self, name, value, prog_bar=False):
        self.trainer.log_metric(name, value, prog_bar)

    def training_step(self, batch, batch_idx):
        raise NotImplementedError

    def validation_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        raise NotImplementedError

    def on_train_epoch_start(self):
        pass

    def on_train_epoch_end(self):
        pass

    def on_validation_epoch_end(self):
        pass


class Trainer:
    def __init__(
        self,
        max_epochs=1,
        gradient_clip_val=None,
        log_every_n_steps=50,
        default_root_dir=None,
        device="cpu",
    ):
        self.max_epochs = max_epochs
        self.gradient_clip_val = gradient_clip_val
        self.log_every_n_steps = log_every_n_steps
        self.default_root_dir = default_root_dir
        self.device = torch.device(device)
        self.current_epoch = 0
        self.global_step = 0
        self.num_training_batches = 0
        self.validating = False
        self.progress_bar_metrics = {}
        self.callback_metrics = {}
        self._epoch_values = {}

    @property
    def estimated_stepping_batches(self):
        return self.max_epochs * self.num_training_batches

    def log_metric(self, name, value, prog_bar=False):
        value = value.detach() if isinstance(value, torch.Tensor) else value
        if self.validating:
            self._epoch_values.setdefault(name, []).append(value)
        else:
            self.callback_metrics[name] = value
        if prog_bar and not self.validating:
            self.progress_bar_metrics[name] = value

    def fit(self, module, train_loader, val_loader=None):
        module.trainer = self
        module.to(self.device)
        self.num_training_batches = len(train_loader)
        (optimizer,), schedulers = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            self.current_epoch = epoch
            self._train_epoch(module, train_loader, optimizer, schedulers)
            if val_loader is not None:
                self._validate(module, val_loader)
            if self.default_root_dir is not None:
                self.save_checkpoint(module, optimizer)

    def _train_epoch(self, module, train_loader, optimizer, schedulers):
        module.train()
        module.on_train_epoch_start()
        for batch_idx, batch in enumerate(train_loader):
            batch = self._transfer_batch_to_device(batch)
            optimizer.zero_grad()
            loss = module.training_step(batch, batch_idx)
            loss.backward()
            if self.gradient_clip_val is not None:
                nn.utils.clip_grad_norm_(module.parameters(), self.gradient_clip_val)
            optimizer.step()
            self._update_learning_rates(schedulers, "step")
            if self.global_step % self.log_every_n_steps == 0:
                self._print_progress(batch_idx)
            self.global_step += 1
        module.on_train_epoch_end()
        self._update_learning_rates(schedulers, "epoch")

    def _validate(self, module, val_loader):
        module.eval()
        self.validating = True
        self._epoch_values = {}
        with torch.no_grad():
            for batch_idx, batch in enumerate(val_loader):
                batch = self._transfer_batch_to_device(batch)
                module.validation_step(batch, batch_idx)
        for name, values in self._epoch_values.items():
            self.callback_metrics[name] = torch.stack(values).mean()
        self.validating = False
        module.on_validation_epoch_end()

    def _update_learning_rates(self, schedulers, interval):
        for config in schedulers:
            if config["interval"] == interval:
                config["scheduler"].step()

    def _transfer_batch_to_device(self, batch):
        return [x.to(self.device) for x in batch]

    def _print_progress(self, batch_idx):
        metrics = [f"{k} {float(v):.6f}" for k, v in self.progress_bar_metrics.items()]
        position = f"[{batch_idx}/{self.num_training_batches}]"
        print(f"Epoch {self.current_epoch}:", position, *metrics)

    def save_checkpoint(self, module, optimizer):
        os.makedirs(self.default_root_dir, exist_ok=True)
        checkpoint = {
            "epoch": self.current_epoch,
            "global_step": self.global_step,
            "state_dict": module.state_dict(),
            "optimizer_states": [optimizer.state_dict()],
            "hyper_parameters": vars(module.hparams),
        }
        name = f"epoch={self.current_epoch}-step={self.global_step}.ckpt"
        torch.save(checkpoint, os.path.join(self.default_root_dir, name))


class MlpBlock(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Module):
    def __init__(self, dim, num_patches, token_dim, channel_dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.token_mix = MlpBlock(num_patches, token_dim)
        self.norm2 = nn.LayerNorm(dim)
        self.channel_mix = MlpBlock(dim, channel_dim)

    def forward(self, x):
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mix(self.norm2(x))


class MlpMixer(nn.Module):
    def __init__(self, num_classes, image_size, patch_size, dim, depth, token_dim, channel_dim):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)
        self.blocks = nn.Sequential(
            *[MixerBlock(dim, num_patches, token_dim, channel_dim) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = self.blocks(x)
        x = self.norm(x).mean(dim=1)
        return self.head(x)


class LitMixer(LightningModule):
    def __init__(
        self,
        num_classes=10,
        image_size=32,
        patch_size=4,
        dim=128,
        depth=4,
        token_dim=64,
        channel_dim=256,
        lr=5e-4,
        warmup_steps=10,
    ):
        super().__init__()
        self.save_hyperparameters()
        self.model = MlpMixer(
            num_classes, image_size, patch_size, dim, depth, token_dim, channel_dim
        )

    @staticmethod
    def add_model_specific_args(parent_parser):
        parser = parent_parser.add_argument_group("LitMixer")
        parser.add_argument("--dim", type=int, default=128)
        parser.add_argument("--depth", type=int, default=4)
        parser.add_argument("--lr", type=float, default=5e-4)
        parser.add_argument("--warmup_steps", type=int, default=10)
        return parent_parser

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        preds = torch.argmax(logits, dim=1)
        acc = (preds == y).float().mean()
        self.log("val_loss", loss)
        self.log("val_acc", acc, prog_bar=True)

    def on_validation_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(
            f"Epoch {self.current_epoch}: val_loss {metrics['val_loss']:.6f}"
            f" val_acc {metrics['val_acc']:.4f}"
        )

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        total_steps = self.trainer.estimated_stepping_batches
        warmup_steps = self.hparams.warmup_steps

        def lr_lambda(step):
            if step < warmup_steps:
                return (step + 1) / warmup_steps
            progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
            return 0.5 * (1.0 + math.cos(math.pi * progress))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


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
    return TensorDataset(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y))


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
    parser = LitMixer.add_model_specific_args(parser)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    # data
    train_set = make_dataset(args.train_size, num_classes=10, image_size=32, seed=0)
    val_set = make_dataset(args.val_size, num_classes=10, image_size=32, seed=1)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=args.shuffle)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    # model
    model = LitMixer(dim=args.dim, depth=args.depth, lr=args.lr, warmup_steps=args.warmup_steps)
    if args.init is not None:
        model.load_state_dict(torch.load(args.init))
    if args.save_init is not None:
        torch.save(model.state_dict(), args.save_init)

    # training
    trainer = Trainer(
        max_epochs=args.max_epochs,
        gradient_clip_val=args.gradient_clip_val,
        log_every_n_steps=args.log_every_n_steps,
        default_root_dir=args.default_root_dir,
    )
    trainer.fit(model, train_loader, val_loader)


if __name__ == "__main__":
    cli_main()
