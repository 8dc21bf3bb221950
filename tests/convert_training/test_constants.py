"""What a compiled step has taken for a constant, and a program changes where no rule sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows
from tests.convert_training.test_compiled_steps import COUNTED
from tests.warm_python import run_python

#: A network with what forward reads, a training of two steps, and two such trainings.
PROGRAM = f"""{LAYERS}
CONFIG, SHARES = {{"alpha": 1.0}}, {{"cross_entropy": 1.0}}


class Options:
    alpha = 1.0


class Net(nn.Module):
    def __init__(self, config, options):
        super().__init__()
        self.layer, self.config, self.options = make(1), config, options
        self.scale, self.parts, self.history, self._heat = 1.0, [1.0], [], 1.0
        self.prior = torch.ones(4)
        self.register_buffer("mask", torch.ones(4))

    @property
    def heat(self):
        return self._heat

    @heat.setter
    def heat(self, value):
        self._heat = value

    def forward(self, x):
        x = self.layer(x) * self.scale * sum(self.parts) * self.config["alpha"] * CONFIG["alpha"]
        return x * self.options.alpha / self._heat * self.mask * self.prior


class Scaled:
    def __init__(self, network, scale):
        self.network, self.scale = network, scale

    def __enter__(self):
        self.network.scale = self.scale

    def __exit__(self, *kind):
        self.network.scale = 1.0

    def __call__(self):
        self.network.scale *= 3.0


def triple(network):
    if isinstance(network, Net):
        network.scale = network.scale * 3.0


config, options = {{"alpha": 1.0}}, Options()
net = Net(config, options)
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
anneal, callbacks, mask, prior = Scaled(net, 1.0), [triple], net.mask, net.prior


def criterion(answer, y):
    return nn.functional.cross_entropy(answer, y) * SHARES["cross_entropy"]


def train():
    for k in range(2):
        optimizer.zero_grad()
        loss = criterion(net(X[k]), Y[k])
        loss.backward()
        optimizer.step()
        print(loss.item())


"""
TWICE = """
def main():
    for epoch in range(3):
        train()
        CHANGE


main()
"""


#: Changes that no rule sees in a loop, since what makes them is a value.
CHANGES = {
    "a function that is given": "net.apply(triple)",
    "an object that is called": "anneal()",
    "a function in a list": "callbacks[0](net)",
    "a property": "net.heat = 0.5",
    "an object it holds": "options.alpha += 2.0",
    "a dictionary it holds": 'config["alpha"] -= 0.5',
    "a module's dictionary": 'CONFIG["alpha"] -= 0.8',
    "what a loss function reads": 'SHARES["cross_entropy"] = 0.5',
    "a list it holds": "net.parts.append(-0.5)",
    "an attribute by its name": "setattr(net, 'sca' + 'le', 2.0)",
    "a buffer by another name": "mask.mul_(0.5)",
    "a buffer that is found": 'dict(net.named_buffers())["mask"].fill_(0.8)',
    "a tensor": "prior[1] = 0.7",
}


@pytest.mark.parametrize(
    "trained",
    [
        pytest.param(
            "".join(f"def change_{n}(): {code}\n" for n, code in enumerate(CHANGES.values()))
            + f"changes = [{', '.join(f'change_{n}' for n in range(len(CHANGES)))}]\n"
            + "for change in changes:\n    train()\n    change()\ntrain()\n",
            id="each of the changes",
        ),
        pytest.param(
            "train()\nnet.scale = 3.0\ntrain()\n"
            "for scale in (1.0, 2.0, 1.0):\n    with Scaled(net, scale):\n        train()",
            id="between two trainings, and in a context",
        ),
        pytest.param(
            "train()\nnet.eval()\nwith torch.no_grad():\n    for k in range(12):\n"
            "        setattr(net, 'sca' + 'le', 1.0 + k // 4)\n"
            "        print(net(X[0]).sum().item())\n",
            id="evaluations",
        ),
    ],
)
def test_steps_follow_what_has_changed(trained: str, tmp_path: Path) -> None:
    done = assert_follows(PROGRAM + trained, tmp_path, tolerance=3e-5)
    assert "@ms.jit" in done.text


@pytest.mark.parametrize(
    ("change", "graphs"),
    [
        pytest.param("net.history.append(epoch)", 1, id="what forward does not read"),
        pytest.param("callbacks[0](net) if epoch == 0 else None", 2, id="once"),
        pytest.param("net.__dict__.update(scale=1.0 + epoch % 2)", 2, id="to and fro"),
    ],
)
def test_steps_are_compiled_for_each_constant_once(
    change: str, graphs: int, tmp_path: Path
) -> None:
    trained = TWICE.replace("range(3)", "range(6)").replace("CHANGE", change)
    assert_follows(PROGRAM + trained, tmp_path)
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert done.stdout.splitlines()[-1] == f"compiled {graphs}"


def test_many_compilations_are_told_with_what_changes(tmp_path: Path) -> None:
    trained = TWICE.replace("range(3)", "range(9)").replace("CHANGE", "anneal()")
    assert_follows(PROGRAM.replace("*= 3.0", "*= 1.1") + trained, tmp_path)
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert done.stderr.count("steps are compiled again and again, as scale changes") == 1


def test_what_tensors_and_containers_hold_is_compared() -> None:
    import mindspore as ms
    from mindspore import nn

    from isograd.runtime.training_constants import Constants

    class Net(nn.Cell):  # type: ignore[misc] # MindSpore has no types
        def __init__(self) -> None:
            super().__init__()
            self.half = ms.Tensor([1.0, 2.0], ms.bfloat16)
            self.many, self.few = list(range(10_000)), {"a": [1, float("nan")]}

        def construct(self, x: object) -> object:
            return self.half, self.many, self.few, x

    net = Net()
    constants = Constants((net,))
    assert constants.changed() == ""
    net.many[0] = 5  # so many are compared by their number
    assert constants.changed() == ""
    net.few["a"].append(2)
    assert constants.changed() == "few"
    net.few["a"].pop()
    net.half.assign_value(ms.Tensor([1.0, 3.0], ms.bfloat16))
    assert constants.changed() == "half"
