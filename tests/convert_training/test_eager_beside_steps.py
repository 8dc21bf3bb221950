"""Code that takes gradients of its own beside compiled steps."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, Converted, assert_follows, numbers

from isograd.convert.run import convert_path

TRAIN = """

def train(net, optimizer):
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


net = make(1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
print(train(net, optimizer))
"""
ATTACK = """

def attack(net, x, y):
    x = x.clone()
    x.requires_grad = True
    nn.functional.cross_entropy(net(x), y).backward()
    return (x + 0.1 * x.grad.sign()).detach()
"""
ADVERSARIAL = """
for x, y in zip(X, Y):
    adversarial = attack(net, x, y)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(adversarial), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
HANDED = """

def epoch(net, optimizer, change):
    for x, y in zip(X, Y):
        changed = change(net, x, y)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(changed), y)
        loss.backward()
        optimizer.step()
        print(loss.item())


epoch(net, optimizer, attack)
"""
FISHER = """

def fisher(net):
    found = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    for x, y in zip(X, Y):
        net.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        for name, p in net.named_parameters():
            found[name] += p.grad.data ** 2
    return found


for value in fisher(net).values():
    print(value.sum().item())
print(train(net, optimizer))
"""
NORM = """

def train_with_norm(net, optimizer):
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        norm = sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5
        optimizer.step()
        print(loss.item(), norm, sep="\\n")


train_with_norm(net, optimizer)
print(train(net, optimizer))
"""
LBFGS = """

def fit(net, x, y):
    searching = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)

    def closure():
        searching.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss

    print(searching.step(closure).item())


fit(net, X[0], Y[0])
"""
SCRIPT = """
inputs = X[0].clone()
inputs.requires_grad_()
net(inputs)[:, 1].sum().backward()
print(inputs.grad.abs().sum().item())
"""
LANGEVIN = """

def sample(net, x):
    for _ in range(3):
        x = x.detach().requires_grad_()
        x = x - 0.1 * torch.autograd.grad(net(x).logsumexp(1).sum(), [x])[0]
    return x.detach()


print(sample(net, X[0]).sum().item())
print(train(net, optimizer))
"""
COOLED = """

class Cooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = make(2)
        self.heat = 1.0

    def forward(self, x):
        return self.layer(x) / self.heat


cooled = Cooled()
cooling = torch.optim.SGD(cooled.parameters(), lr=0.1, momentum=0.9)
for x, y in zip(X, Y):
    cooling.zero_grad()
    loss = nn.functional.cross_entropy(cooled(x), y)
    loss.backward()
    cooling.step()
    cooled.heat = cooled.heat * 0.9
    print(loss.item())
"""
SOMETIMES = """
body, head = make(2), make(3)
both = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.05, weight_decay=0.1)
for i, (x, y) in enumerate(zip(X, Y)):
    loss = nn.functional.cross_entropy(body(x), y)
    if i % 2:
        loss = loss + nn.functional.cross_entropy(head(x), y)
    both.zero_grad()
    loss.backward()
    both.step()
    print(loss.item(), head.weight.sum().item(), sep="\\n")
"""
GIVEN = """

def fit(features, head, y, optimizer):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(features), y)
    loss.backward()
    optimizer.step()
    print(loss.item())


body, head = make(2), make(3)
both = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.5)
for x, y in zip(X, Y):
    fit(body(x), head, y, both)
"""
OBJECT = """

class Attack:
    def __init__(self, net):
        self.net = net

    def __call__(self, x, y):
        x = x.clone().requires_grad_()
        cost = nn.functional.cross_entropy(self.net(x), y)
        return (x + 0.1 * torch.autograd.grad(cost, [x])[0].sign()).detach()


def defended(net, attacker, optimizer):
    for x, y in zip(X, Y):
        adversarial = attacker(x, y)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(adversarial), y)
        loss.backward()
        optimizer.step()
        print(loss.item())


defended(net, Attack(net), optimizer)
"""
STATISTICS = """

def norms(net):
    return {name: p.grad.norm().item() for name, p in net.named_parameters()}


def train_and_say(net, optimizer):
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        for norm in norms(net).values():
            print(norm)
        optimizer.step()


train_and_say(net, optimizer)
print(train(net, optimizer))
"""
WRITTEN = """

def surgery(net, optimizer, x, y):
    parameters = list(net.parameters())
    out = net(x)
    first = torch.autograd.grad(nn.functional.cross_entropy(out, y), parameters, retain_graph=True)
    second = torch.autograd.grad(out.pow(2).mean(), parameters)
    optimizer.zero_grad()
    for p, a, b in zip(parameters, first, second):
        p.grad = a - (a * b).sum() / b.pow(2).sum() * b
    optimizer.step()
    print(sum(p.sum() for p in parameters).item())


surgery(net, optimizer, X[0], Y[0])
print(train(net, optimizer))
"""
SEARCH = """
import copy


def search(net, optimizer):
    kept = copy.deepcopy(net.state_dict()), copy.deepcopy(optimizer.state_dict())
    rate, losses = 1e-3, []
    for x, y in zip(X, Y):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        losses.append(loss.item())
        if losses[-1] > 4 * min(losses):
            break
        loss.backward()
        optimizer.step()
        rate *= 10
    net.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    return losses


for value in search(net, optimizer):
    print(value)
print(train(net, optimizer))
"""
LEFT_BEHIND = """

def norm(net, x, y):
    nn.functional.cross_entropy(net(x), y).backward()
    return sum(p.grad.norm().item() for p in net.parameters())


print(norm(net, X[0], Y[0]))
"""
ONCE_MORE = """

def train_and_keep(net, optimizer, kept):
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()
        kept.append(out)


def again(net, kept):
    net.zero_grad()
    kept[-1].pow(2).sum().backward()
    return sum(p.grad.norm().item() for p in net.parameters())


kept = []
train_and_keep(net, torch.optim.SGD(net.parameters(), lr=0.0), kept)
print(again(net, kept))
"""
MARKED = """

def frozen(net, x):
    for p in net.parameters():
        p.requires_grad_(False)
    x = x.clone().requires_grad_()
    net(x).sum().backward()
    for p in net.parameters():
        p.requires_grad_(True)
    return x.grad.sum().item()


print(frozen(net, X[0]))
"""
FORWARD = """

class Smooth(nn.Module):
    def forward(self, net, x):
        d = torch.ones_like(x).requires_grad_()
        net(x + d).pow(2).sum().backward()
        step = d.grad.sign()
        return net(x + 0.1 * step).pow(2).mean()


smooth = Smooth()
for x, y in zip(X, Y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y) + smooth(net, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def follows(text: str, folder: Path) -> Converted:
    return assert_follows(LAYERS + text, folder, tolerance=2e-5)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ATTACK + TRAIN + ADVERSARIAL, id="an input that is attacked"),
        pytest.param(ATTACK + TRAIN + HANDED, id="an attack that is handed to the loop"),
        pytest.param(TRAIN + FISHER, id="squares of gradients"),
        pytest.param(TRAIN + NORM, id="a loop that reads the gradients of its step"),
        pytest.param(TRAIN + LBFGS, id="an optimizer without a compiled rule"),
        pytest.param(TRAIN + SCRIPT, id="statements of a script"),
        pytest.param(TRAIN + LANGEVIN, id="a sampler that asks for gradients"),
        pytest.param(TRAIN + OBJECT, id="an object that attacks"),
        pytest.param(TRAIN + STATISTICS, id="a function that reads gradients of its caller"),
        pytest.param(TRAIN + WRITTEN, id="gradients that are written"),
        pytest.param(TRAIN + SEARCH, id="a search that gives back the optimizer's state"),
        pytest.param(TRAIN + COOLED, id="a network that changes between steps"),
        pytest.param(TRAIN + SOMETIMES, id="a network that learns in some rounds"),
        pytest.param(TRAIN + GIVEN, id="a step that is given what a network computed"),
    ],
)
def test_other_loops_are_compiled(text: str, tmp_path: Path) -> None:
    converted = follows(text, tmp_path)
    assert "unrecorded_jit" in converted.text
    said = [f.advice for f in converted.report.findings if f.code == "eager-training"]
    assert said
    assert all("beside the compiled steps" in advice for advice in said)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(TRAIN + LEFT_BEHIND, "may have left", id="gradients that a step leaves"),
        pytest.param(TRAIN + ONCE_MORE, "once more", id="a result that is differentiated again"),
        pytest.param(TRAIN + MARKED, "what learns changes", id="a network that learns for a time"),
        pytest.param(TRAIN + FORWARD, "", id="a network that takes gradients"),
    ],
)
def test_all_loops_stay_eager(text: str, reason: str, tmp_path: Path) -> None:
    converted = follows(text, tmp_path)
    assert "jit" not in converted.text
    said = [f.message for f in converted.report.findings if f.code == "eager-training"]
    assert len(said) == 1
    assert reason in said[0]


def test_an_attack_of_another_file(tmp_path: Path) -> None:
    """What a function of another file returns comes into the step from outside."""
    (tmp_path / "attacks.py").write_text("from torch import nn\n" + ATTACK, encoding="utf-8")
    text = LAYERS + "from attacks import attack\n" + TRAIN + ADVERSARIAL
    converted = assert_follows_project(text, tmp_path)
    assert "unrecorded_jit" in converted


def assert_follows_project(text: str, folder: Path) -> str:
    """Convert a script with the files beside it, and compare what both sides print."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    convert_path(folder, folder.with_name(folder.name + "-port"))
    port = folder.with_name(folder.name + "-port")
    theirs, ours = numbers(folder, is_port=False), numbers(port, is_port=True)
    assert ours == pytest.approx(theirs, rel=2e-5, abs=2e-5)
    return (port / "script.py").read_text(encoding="utf-8")
