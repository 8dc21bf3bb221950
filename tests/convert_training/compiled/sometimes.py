"""Steps that some rounds take: a critic's many, a delayed policy's; a replay memory."""

import random
from collections import deque, namedtuple

import torch
import torch.nn.functional as F
from torch import nn

Transition = namedtuple("Transition", ("state", "action", "following", "reward"))


def made(network, start=0):
    for number, p in enumerate(network.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number + start) * 0.3)
    return network


def waves(count, width, k):
    return torch.sin(torch.arange(count * width).reshape(count, width).float() * (k + 1))


# as WGAN
generator = made(nn.Sequential(nn.Linear(3, 6), nn.LeakyReLU(0.2), nn.Linear(6, 4), nn.Tanh()))
critic = made(nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1)), 3)
optimizer_G = torch.optim.RMSprop(generator.parameters(), lr=0.005)
optimizer_D = torch.optim.RMSprop(critic.parameters(), lr=0.005)
for i in range(6):
    optimizer_D.zero_grad()
    z = waves(6, 3, i)
    fake = generator(z).detach()
    loss_D = -torch.mean(critic(waves(6, 4, i))) + torch.mean(critic(fake))
    loss_D.backward()
    optimizer_D.step()
    for p in critic.parameters():
        p.data.clamp_(-0.1, 0.1)
    if i % 2 == 0:
        optimizer_G.zero_grad()
        loss_G = -torch.mean(critic(generator(z)))
        loss_G.backward()
        optimizer_G.step()
        print(loss_D.item(), loss_G.item(), sep="\n")

# what the critic's step has computed is taken again
for i in range(6):
    z = waves(6, 3, i)
    images = generator(z)
    optimizer_D.zero_grad()
    loss_D = torch.mean(critic(images.detach())) - torch.mean(critic(waves(6, 4, i)))
    loss_D.backward()
    optimizer_D.step()
    if i % 3 == 1:
        loss_G = -torch.mean(critic(images))
        optimizer_G.zero_grad()
        loss_G.backward()
        optimizer_G.step()
        print(loss_G.item())
    print(loss_D.item(), images.sum().item(), sep="\n")


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, count):
        return random.sample(self.memory, count)

    def __len__(self):
        return len(self.memory)


random.seed(0)
policy = made(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
target = made(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
optimizer = torch.optim.AdamW(policy.parameters(), lr=0.01, amsgrad=True)
memory = ReplayMemory(20)
for k in range(10):
    following = None if k % 3 == 2 else waves(1, 4, k + 1)
    memory.push(waves(1, 4, k), torch.tensor([[k % 2]]), following, torch.tensor([k * 0.1]))
    if len(memory) >= 6:
        batch = Transition(*zip(*memory.sample(4)))
        mask = torch.tensor(tuple(map(lambda s: s is not None, batch.following)))
        others = torch.cat([s for s in batch.following if s is not None])
        states, actions = torch.cat(batch.state), torch.cat(batch.action)
        values = policy(states).gather(1, actions)
        expected = torch.zeros(4)
        with torch.no_grad():
            expected[mask] = target(others).max(1).values
        expected = expected * 0.99 + torch.cat(batch.reward)
        loss = F.smooth_l1_loss(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        print(loss.item())
