"""Train a VAE, in the form of PyTorch's examples."""
from __future__ import print_function

import argparse
import os

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description='VAE MNIST Example')
parser.add_argument('--batch-size', type=int, default=512, metavar='N',
                    help='input batch size for training (default: 512)')
parser.add_argument('--epochs', type=int, default=10, metavar='N',
                    help='number of epochs to train (default: 10)')
parser.add_argument('--no-cuda', action='store_true', default=False,
                    help='disables CUDA training')
parser.add_argument('--seed', type=int, default=1, metavar='S',
                    help='random seed (default: 1)')
parser.add_argument('--log-interval', type=int, default=10, metavar='N',
                    help='how many batches to wait before logging training status')
parser.add_argument('--shuffle', action='store_true', default=False,
                    help='shuffle the training images')
parser.add_argument('--results', default='results', metavar='DIR',
                    help='where to write the images (default: results)')
parser.add_argument('--init', metavar='FILE', help='weights to start from')
parser.add_argument('--save-init', metavar='FILE', help='where to write the first weights')
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(args.seed)

device = torch.device("cuda" if args.cuda else "cpu")


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
    return (torch.from_numpy(images[:, None].astype(np.float32)),
            torch.from_numpy(noise.astype(np.float32)),
            torch.from_numpy(labels))


def save_image(images, path, nrow=8):
    """Write (n, 1, h, w) images in [0, 1] as one grey picture."""
    images = (images[:, 0].numpy() * 255).astype(np.uint8)
    rows = [np.hstack(images[i:i + nrow]) for i in range(0, len(images), nrow)]
    picture = np.vstack(rows)
    with open(path, 'wb') as f:
        f.write(b'P5 %d %d 255\n' % picture.shape[::-1] + picture.tobytes())


kwargs = {'num_workers': 1, 'pin_memory': True} if args.cuda else {}
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(*make_digits(20000, seed=1)),
    batch_size=args.batch_size, shuffle=args.shuffle, **kwargs)
test_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(*make_digits(2000, seed=2)),
    batch_size=args.batch_size, shuffle=False, **kwargs)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()

        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5*logvar)
        return mu + eps*std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


model = VAE().to(device)
if args.init:
    model.load_state_dict(torch.load(args.init))
if args.save_init:
    torch.save(model.state_dict(), args.save_init)
optimizer = optim.Adam(model.parameters(), lr=1e-3)


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction='sum')

    # see Appendix B from VAE paper:
    # Kingma and Welling. Auto-Encoding Variational Bayes. ICLR, 2014
    # https://arxiv.org/abs/1312.6114
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    return BCE + KLD


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data, noise, _) in enumerate(train_loader):
        data, noise = data.to(device), noise.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data, noise)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print('Train Epoch: {} [{}/{} ({:.0f}%)]\tloss {:.6f}'.format(
                epoch, batch_idx * len(data), len(train_loader.dataset),
                100. * batch_idx / len(train_loader),
                loss.item() / len(data)))

    print('====> Epoch: {} Average loss: {:.4f}'.format(
          epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for i, (data, noise, _) in enumerate(test_loader):
            data, noise = data.to(device), noise.to(device)
            recon_batch, mu, logvar = model(data, noise)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
            if i == 0:
                n = min(data.size(0), 8)
                comparison = torch.cat([data[:n],
                                        recon_batch.view(args.batch_size, 1, 28, 28)[:n]])
                save_image(comparison.cpu(),
                           args.results + '/reconstruction_' + str(epoch) + '.pgm', nrow=n)

    test_loss /= len(test_loader.dataset)
    print('====> Test set loss: {:.4f}'.format(test_loss))


if __name__ == "__main__":
    os.makedirs(args.results, exist_ok=True)
    sample_noise = torch.from_numpy(np.random.RandomState(3).normal(size=(64, 20))).float()
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = sample_noise.to(device)
            sample = model.decode(sample).cpu()
            save_image(sample.view(64, 1, 28, 28),
                       args.results + '/sample_' + str(epoch) + '.pgm')
