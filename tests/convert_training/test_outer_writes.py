"""What a step writes into tensors from outside of it is no part of its graph: the loop is eager."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
class Stats:
    total = torch.zeros(4)


seen = torch.zeros(4)
Made = torch.FloatTensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = make(1)
        self.seen = torch.zeros(4)
        self.rows = [torch.zeros(4), torch.zeros(4)]
        self.limits = nn.Parameter(torch.zeros(4), requires_grad=False)

    def forward(self, x):
        IN_FORWARD
        return self.layer(x)


def loss_of(net, x):
    out = net(x)
    IN_LOSS
    return out.pow(2).mean()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x in X:
    loss = loss_of(net, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
for held in (seen, Stats.total, net.seen, net.rows[0], net.limits):
    for number in held.tolist():
        print(number)
"""


def _reasons(text: str, folder: Path) -> list[str]:
    found = assert_follows(text, folder).report.findings
    return [f.message.partition(": ")[2] for f in found if f.code == "eager-training"]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param("seen.add_(x.mean(0))", id="a tensor of the module"),
        pytest.param("seen[0] += x.sum()", id="an element of it"),
        pytest.param("torch.add(seen, x.mean(0), out=seen)", id="by out"),
        pytest.param("Stats.total.add_(x.mean(0))", id="a tensor of a class"),
    ],
)
@pytest.mark.parametrize("place", ["IN_LOSS", "IN_FORWARD"])
def test_a_tensor_from_outside(write: str, place: str, tmp_path: Path) -> None:
    text = PROGRAM.replace(place, write).replace("IN_LOSS", "").replace("IN_FORWARD", "pass")
    (reason,) = _reasons(text, tmp_path)
    name = write.partition(".add_")[0] if "add_" in write else "seen"
    assert name in reason


@pytest.mark.parametrize(
    ("write", "name"),
    [
        pytest.param("self.seen.mul_(0.5).add_(x.mean(0))", "self.seen", id="a product in place"),
        pytest.param("self.seen[1] = x.mean()", "self.seen[1]", id="an element"),
        pytest.param("self.rows[0].add_(x.mean(0))", "self.rows[0]", id="a tensor in a list"),
    ],
)
def test_an_attribute_that_is_no_buffer(write: str, name: str, tmp_path: Path) -> None:
    text = PROGRAM.replace("IN_FORWARD", write).replace("IN_LOSS", "")
    assert _reasons(text, tmp_path) == [f"what is written to {name} is no part of a static graph"]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param("self.seen.add_(x.mean(0))", id="what is only added to"),
        pytest.param("self.limits.mul_(0.5).add_(x.mean(0))", id="a Parameter"),
        pytest.param("x = x.clone().add_(2)", id="a tensor of its own"),
        pytest.param("x = x + torch.FloatTensor(4).fill_(2.0)", id="a tensor that is made"),
        pytest.param("x = x + Made(4).fill_(2.0)", id="by a class under another name"),
    ],
)
def test_what_a_graph_writes_is_compiled(write: str, tmp_path: Path) -> None:
    text = PROGRAM.replace("IN_FORWARD", write).replace("IN_LOSS", "")
    assert _reasons(text, tmp_path) == []
