"""Train a VAE with MindSpore; nn.Adam places eps a little differently from torch's."""
import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


class VAE(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(784, 400)
        self.fc21 = nn.Dense(400, 20)
        self.fc22 = nn.Dense(400, 20)
        self.fc3 = nn.Dense(20, 400)
        self.fc4 = nn.Dense(400, 784)
        self.relu = nn.ReLU()
        self.sigmoid = nn.Sigmoid()

    def encode(self, x):
        h1 = self.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def decode(self, z):
        return self.sigmoid(self.fc4(self.relu(self.fc3(z))))

    def construct(self, x, eps):
        mu, logvar = self.encode(x.reshape(-1, 784))
        z = mu + eps * ops.exp(0.5 * logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    """The reconstruction and the KL divergence, summed over elements and batch."""
    bce = ops.binary_cross_entropy(recon_x, x.reshape(-1, 784), reduction="sum")
    kld = -0.5 * (1 + logvar - ops.square(mu) - ops.exp(logvar)).sum()
    return bce + kld


def make_digits(n, seed):
    """Ten kinds of four-blob figures, and for each the noise of its latent variable."""
    kinds = np.random.RandomState(1234).uniform(6, 22, size=(10, 4, 2))
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, size=n)
    centres = kinds[labels] + rng.uniform(-2, 2, size=(n, 1, 2)) + rng.normal(0, 0.5, (n, 4, 2))
    grid = np.arange(28)
    rows = np.exp(-(grid - centres[..., :1]) ** 2 / 8.0)
    cols = np.exp(-(grid - centres[..., 1:]) ** 2 / 8.0)
    images = np.einsum('nkh,nkw->nhw', rows, cols).clip(0, 1)
    noise = rng.normal(size=(n, 20))
    return images[:, None].astype(np.float32), noise.astype(np.float32)


def save_image(images, path, nrow=8):
    """Write (n, 1, h, w) images in [0, 1] as one grey picture."""
    images = (images[:, 0] * 255).astype(np.uint8)
    picture = np.vstack([np.hstack(images[i:i + nrow]) for i in range(0, len(images), nrow)])
    with open(path, "wb") as f:
        f.write(b"P5 %d %d 255\n" % picture.shape[::-1] + picture.tobytes())


def make_train_step(model, optimizer):
    def forward_fn(data, noise):
        recon_batch, mu, logvar = model(data, noise)
        return loss_function(recon_batch, data, mu, logvar)

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(data, noise):
        loss, grads = grad_fn(data, noise)
        optimizer(grads)
        return loss

    return train_step


def train(args, model, train_step, train_set, samples, epoch):
    model.set_train()
    train_loss = 0.0
    batches = train_set.get_dataset_size()
    for batch_idx, (data, noise) in enumerate(train_set.create_tuple_iterator(num_epochs=1)):
        loss = train_step(data, noise).item()
        train_loss += loss
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{samples} "
                  f"({100. * batch_idx / batches:.0f}%)]\tloss {loss / len(data):.6f}")
    print(f"====> Epoch: {epoch} Average loss: {train_loss / samples:.4f}")


def test(args, model, test_set, samples, epoch):
    model.set_train(False)
    test_loss = 0.0
    for i, (data, noise) in enumerate(test_set.create_tuple_iterator(num_epochs=1)):
        recon_batch, mu, logvar = model(data, noise)
        test_loss += loss_function(recon_batch, data, mu, logvar).item()
        if i == 0:
            n = min(len(data), 8)
            recon = recon_batch.asnumpy()[:n].reshape(n, 1, 28, 28)
            save_image(np.concatenate([data.asnumpy()[:n], recon]),
                       f"{args.results}/reconstruction_{epoch}.pgm", nrow=n)
    print(f"====> Test set loss: {test_loss / samples:.4f}")


def main():
    parser = argparse.ArgumentParser(description="VAE MNIST example")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--shuffle", action="store_true", help="shuffle the training images")
    parser.add_argument("--results", default="results", help="where to write the images")
    parser.add_argument("--init", metavar="FILE", help="weights to start from")
    parser.add_argument("--save-init", metavar="FILE", help="where to write the first weights")
    args = parser.parse_args()
    ms.set_device("CPU")
    ms.set_seed(args.seed)

    train_data, test_data = make_digits(20000, seed=1), make_digits(2000, seed=2)
    train_set = NumpySlicesDataset(train_data, shuffle=args.shuffle).batch(args.batch_size)
    test_set = NumpySlicesDataset(test_data, shuffle=False).batch(args.batch_size)

    model = VAE()
    if args.init:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init))
    if args.save_init:
        ms.save_checkpoint(model, args.save_init)
    optimizer = nn.Adam(model.trainable_params(), learning_rate=1e-3)
    train_step = make_train_step(model, optimizer)

    os.makedirs(args.results, exist_ok=True)
    sample_noise = np.random.RandomState(3).normal(size=(64, 20)).astype(np.float32)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_step, train_set, len(train_data[0]), epoch)
        test(args, model, test_set, len(test_data[0]), epoch)
        sample = model.decode(ms.Tensor(sample_noise)).asnumpy()
        save_image(sample.reshape(64, 1, 28, 28), f"{args.results}/sample_{epoch}.pgm")


if __name__ == "__main__":
    main()
