"""Two steps of a round become one where the second loss goes back through what both read."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, numbers
from tests.convert_training.test_compiled_steps import converted

#: A generator with running statistics, a critic, and optimizers for both.
NETWORKS = f"""{LAYERS}

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = make(0), nn.BatchNorm1d(4, eps=0.1)

    def forward(self, z):
        hidden = self.norm(self.layer(z))
        return torch.tanh(hidden)

    def both(self, z):
        return self.forward(z), self.layer(z)


def tell(*networks):
    for network in networks:
        for value in network.state_dict().values():
            if value.dim() > 0:  # batches are not counted in a port
                print(float(value.double().sum()))


netG, netD = Generator(), nn.Sequential(make(1), nn.Tanh(), make(2))
optD = torch.optim.SGD(netD.parameters(), lr=0.1, momentum=0.9)
optG = torch.optim.Adam(netG.parameters(), lr=0.05, eps=1e-3)
losses = []
"""
#: The loop of a script.
LOOP = """
for k, (z, real) in enumerate(zip(X, X.flip(0))):
    label = torch.zeros(4, 1)
    optD.zero_grad()
    fake = netG(z)
    score = netD(fake.detach()).mean(1, keepdim=True)
    lossD = ((score - label) ** 2).mean() - netD(real).mean() * 0.1
    lossD.backward()
    optD.step()

    losses.append(lossD.item() + score.mean().item())
    label = torch.ones_like(label)
    optG.zero_grad()
    score = netD(fake).mean(1, keepdim=True)
    lossG = ((score - label) ** 2).mean()
    lossG.backward()
    optG.step()
    print(lossD.item(), lossG.item(), score.sum().item(), label.sum().item(), sep="\\n")
print(*losses, sep="\\n")
tell(netG, netD)
"""
#: The same in a function, whose label is filled.
IN_FUNCTION = """
def train(generator, critic, batches):
    total = 0.0
    for z, real in batches:
        label = torch.zeros(4, 1)
        fake = generator(z)
        optD.zero_grad()
        lossD = ((critic(fake.detach()) - label) ** 2).mean() + critic(real).mean() * 0.1
        lossD.backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
        optD.step()
        total += lossD.item()
        label.fill_(1.0)
        optG.zero_grad()
        lossG = ((critic(fake) - label) ** 2).mean()
        lossG.backward()
        optG.step()
        if total > 0:
            print(lossG.item() + total)
    return total


print(train(netG, netD, list(zip(X, X.flip(0)))))
tell(netG, netD)
"""


@pytest.mark.parametrize(
    ("loop", "old", "new"),
    [
        pytest.param(LOOP, "", "", id="a loop of a script"),
        pytest.param(IN_FUNCTION, "", "", id="a function"),
        pytest.param(
            LOOP,
            "lossG = ((score - label) ** 2).mean()",
            "lossG = ((score - label) ** 2).mean() + netG.layer.weight.pow(2).sum()",
            id="a penalty on what the shared part reads",
        ),
        pytest.param(
            LOOP,
            "    fake = netG(z)\n",
            "    hidden = netG(z)\n    fake = (hidden + 0.5) * 2.0\n",
            id="two statements",
        ),
        pytest.param(
            LOOP.replace("(fake.detach())", "(fake.detach() + plain.detach())").replace(
                "netD(fake)", "netD(fake + plain)"
            ),
            "fake = netG(z)",
            "fake, plain = netG.both(z)",
            id="two values",
        ),
        pytest.param(
            LOOP.replace("(fake.detach())", "(fake[0].detach())").replace("(fake)", "(fake[1])"),
            "fake = netG(z)",
            "fake = netG.both(z)",
            id="a value that is a tuple",
        ),
        pytest.param(
            LOOP,
            "    losses.append(",
            "    if k == 1:\n        losses.append(0.5)\n    print(k + fake.sum().item())\n"
            "    losses.append(",
            id="what both have computed is read between them",
        ),
        pytest.param(
            LOOP.replace("sum().item(), sep", "sum().item(), fake.mean().item(), sep"),
            "    losses.append(lossD",
            "    lossG = 3.0\n    losses.append(lossG + lossD",
            id="a name of the second step is bound between them",
        ),
    ],
)
def test_joint_steps_follow_the_original(loop: str, old: str, new: str, tmp_path: Path) -> None:
    assert old in loop
    done = assert_follows(NETWORKS + loop.replace(old, new), tmp_path)
    assert "pull_back" in done.text
    assert done.text.count("@ms.jit") == 1


def test_what_is_drawn_is_drawn_once(tmp_path: Path) -> None:
    own = LOOP.partition("    print(lossD")[0].replace("netG(z)", "dropout(netG(z), 0.5)")
    own = own.replace("lossG = (", "lossG = fake.sum() + 0 * (")
    own += "    print(fake.sum().item() - lossG.item())\n"
    text, found = converted(NETWORKS + "from torch.nn.functional import dropout\n" + own, tmp_path)
    assert found == []
    assert "pull_back" in text
    assert numbers(tmp_path / "port", is_port=True) == pytest.approx([0, 0, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "label = torch.ones_like(label)",
            "label = torch.ones_like(label) * score.mean()",
            id="an input of the first step's results",
        ),
        pytest.param(
            "label = torch.ones_like(label)",
            "shape = (4, 1)\n    label = torch.ones(shape)",
            id="an input of what is between them",
        ),
        pytest.param(
            "label = torch.ones_like(label)", "label = torch.rand(4, 1)", id="an input is drawn"
        ),
        pytest.param(
            "label = torch.ones_like(label)",
            "other = label\n    other.fill_(1.0)",
            id="an input is changed under another name",
        ),
        pytest.param(
            "    losses.append(",
            "    losses.append(torch.rand(1).item())\n    losses.append(",
            id="numbers are drawn",
        ),
        pytest.param(
            "    losses.append(",
            "    losses.append(weights[0].sum().item())\n    losses.append(",
            id="weights are read under another name",
        ),
        pytest.param(
            "    losses.append(",
            "    losses.append(netG.norm.running_mean.sum().item())\n    losses.append(",
            id="a network is read",
        ),
        pytest.param(
            "    losses.append(",
            "    report(losses)\n    losses.append(",
            id="a function that is not known",
        ),
        pytest.param(
            "    losses.append(",
            "    if k == 1:\n        break\n    losses.append(",
            id="a round may end between them",
        ),
        pytest.param(
            "lossG = ((score - label) ** 2)",
            "lossG = ((score - label) ** 2 + lossD.detach())",
            id="the second loss reads the first one",
        ),
        pytest.param("netG(z)", "netG(z * (k + 1))", id="what is shared reads a number"),
    ],
)
def test_other_steps_stay_apart(old: str, new: str, tmp_path: Path) -> None:
    assert old in LOOP
    start = NETWORKS + "weights = [*netG.parameters()]\nfrom reports import report\n"
    text, _ = converted(start + LOOP.replace(old, new), tmp_path)
    assert "pull_back" not in text
    assert text.count("@ms.jit") in (0, 2)
