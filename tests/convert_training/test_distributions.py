"""Distributions in a compiled step: a static graph takes their densities, and no objects."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
from torch.distributions import Categorical

HELPERS


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = make(1), make(2)
        self.scale = nn.Parameter(torch.zeros(1, 4))

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))

    def evaluate(self, x, action):
        dist = Categorical(torch.softmax(self.forward(x), -1))
        return dist.log_prob(action), dist.entropy()

    def act(self, x, action=None):
        dist = Categorical(logits=self.forward(x))
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action), dist.entropy()

    def move(self, x, action=None):
        dist = torch.distributions.Normal(self.forward(x), self.scale.exp())
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action).sum(1), dist.entropy().sum(1)


net = Policy()
optimizer = torch.optim.Adam(net.parameters(), 0.02)
advantages = torch.sin(torch.arange(12.0)).view(3, 4)
masks = torch.arange(16).view(4, 4) % 5 != 3
for epoch in range(2):
    for states, actions, advantage in zip(X, Y, advantages):
        FORWARD
        old = -torch.ones(4)
        ratio = torch.exp(log_prob - old)
        least = torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
        loss = -least.mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        print(loss.item())
LATE
"""


def _reasons(folder: Path, forward: str, helpers: str = "", late: str = "") -> list[str]:
    lines = forward.replace("\n", "\n        ")
    text = PROGRAM.replace("FORWARD", lines).replace("HELPERS", helpers).replace("LATE", late)
    converted = assert_follows(text, folder)
    found = [f for f in converted.report.findings if f.code == "eager-training"]
    assert bool(found) != ("@ms.jit" in converted.text), found
    return [f.message.partition(": ")[2] for f in found]


ASKED = "log_prob, entropy = dist.log_prob(actions), dist.entropy()"


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param(f"dist = Categorical(logits=net(states))\n{ASKED}", id="logits"),
        pytest.param(f"dist = Categorical(net(states).softmax(-1))\n{ASKED}", id="shares"),
        pytest.param(
            f"dist = torch.distributions.Categorical(probs=net(states).exp())\n{ASKED}",
            id="probabilities that do not sum to one",
        ),
        pytest.param(
            "scores = torch.where(masks, net(states), torch.tensor(float('-inf')))\n"
            "dist = Categorical(logits=scores)\n"
            "log_prob, entropy = dist.log_prob(value=masks.long().argmax(-1)), dist.entropy()",
            id="classes that are left out",
        ),
        pytest.param(
            "dist = Categorical(logits=net(states))\n"
            "log_prob = dist.log_prob(torch.stack((actions, actions.flip(0)))).sum(0)\n"
            "entropy = dist.entropy()",
            id="several actions for each state",
        ),
        pytest.param("log_prob, entropy = net.evaluate(states, actions)", id="in a method"),
        pytest.param(
            "_, log_prob, entropy = net.act(states, actions)", id="drawn where none is given"
        ),
        pytest.param("_, log_prob, entropy = net.move(states, states.sin())", id="a normal one"),
        pytest.param(
            "dist = torch.distributions.Normal(loc=net(states), scale=0.5)\n"
            "log_prob, entropy = dist.log_prob(value=states).sum(1), dist.entropy().sum(1)",
            id="of one deviation",
        ),
    ],
)
def test_log_prob_and_entropy_are_compiled(forward: str, tmp_path: Path) -> None:
    assert _reasons(tmp_path, forward) == []


def test_what_draws_outside_of_the_step_keeps_its_distribution(tmp_path: Path) -> None:
    late = "dist = Categorical(logits=torch.eye(3) * 60)\nprint(dist.sample().sum().item())"
    helpers = f"def act(x):\n    {late.splitlines()[0]}\n    return dist.sample()"
    late = "print(act(X).sum().item())"
    forward = f"dist = Categorical(logits=net(states))\n{ASKED}"
    assert _reasons(tmp_path, forward, helpers, late) == []


def test_draws_of_a_function_are_of_its_distribution(tmp_path: Path) -> None:
    late = (
        "bold = Policy()\nbold.head.weight.data.mul_(200.0)\nbold.head.bias.data.mul_(200.0)\n"
        "print(bold.act(X[0])[0].sum().item())\n"
        "with torch.no_grad():\n    net.scale.fill_(-20.0)\n"
        "print(net.move(X[0])[0].sum().item())"
    )
    forward = "_, log_prob, entropy = net.act(states, actions)\n"
    forward += "log_prob = log_prob + net.move(states, states)[1]"
    assert _reasons(tmp_path, forward, late=late) == []


@pytest.mark.parametrize(
    ("forward", "helpers"),
    [
        pytest.param(
            f"dist = Categorical(logits=net(states))\n{ASKED}\nentropy = entropy + dist.mode.min()",
            "",
            id="asked for something else",
        ),
        pytest.param(
            "log_prob, entropy = parts(Categorical(logits=net(states)), actions)",
            "def parts(dist, actions):\n    return dist.log_prob(actions), dist.entropy()",
            id="handed on",
        ),
        pytest.param(
            f"dist = Categorical(logits=net(states), validate_args=False)\n{ASKED}",
            "",
            id="with another argument",
        ),
    ],
)
def test_any_other_distribution_stays_eager(forward: str, helpers: str, tmp_path: Path) -> None:
    (reason,) = _reasons(tmp_path, forward, helpers)
    assert "which no static graph makes" in reason


def test_a_name_that_may_hold_another_distribution(tmp_path: Path) -> None:
    helpers = (
        "def asked(dist, scores, actions):\n    if scores is not None:\n"
        "        dist = Categorical(logits=scores)\n"
        "    return dist.log_prob(actions), dist.entropy()"
    )
    forward = "log_prob, entropy = asked(None, net(states), actions)"
    (reason,) = _reasons(tmp_path, forward, helpers)
    assert "asked does not compile to the same" in reason


def test_a_distribution_that_a_network_is_given_stays_eager(tmp_path: Path) -> None:
    helpers = (
        "class Shifted(nn.Module):\n    def forward(self, z, prior):\n"
        "        return prior.log_prob(z)\n\n\nshifted = Shifted()\n"
        "prior = torch.distributions.Normal(torch.zeros(4), torch.ones(4))"
    )
    forward = "log_prob = shifted(net(states), prior).sum(1)\nentropy = log_prob.detach()"
    (reason,) = _reasons(tmp_path, forward, helpers)
    assert "prior is an object" in reason
