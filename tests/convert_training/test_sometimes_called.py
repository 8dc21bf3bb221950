"""What some rounds alone call learns in these alone, as torch's optimizer has it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, convert

TEXT = (
    LAYERS
    + """model, aux, cross = make(0), make(1), nn.CrossEntropyLoss()
opt = torch.optim.Adam([*model.parameters(), *aux.parameters()], lr=0.1)
for epoch in range(3):
    for x, y in zip(X, Y):
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        if epoch != 1:
            loss = loss + LOSS
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
print(aux.weight.norm().item())
"""
)


def test_parameters_of_a_branch_rest_where_it_is_off(tmp_path: Path) -> None:
    follows = assert_follows(
        TEXT.replace("LOSS", "nn.functional.cross_entropy(aux(out), y)"), tmp_path
    )
    (said,) = [f for f in follows.report.findings if f.code == "eager-training"]
    assert "aux is called in some rounds alone" in said.message


def test_a_loss_without_parameters_may_be_in_a_branch(tmp_path: Path) -> None:
    assert "@ms.jit" in convert(TEXT.replace("LOSS", "cross(out, y)"), tmp_path).text


#: A network of several parts, and one step of it in each round.
SEVERAL = (
    LAYERS
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([make(0), make(1)])

    def forward(self, x, task):
        FORWARD


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
for k in range(6):
    loss = nn.functional.cross_entropy(net(X[k % 3], k % 2), Y[k % 3])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), net.parts[1].weight.norm().item(), sep="\\n")
"""
)


def test_a_part_that_an_argument_chooses_rests_where_it_is_not_chosen(tmp_path: Path) -> None:
    follows = assert_follows(SEVERAL.replace("FORWARD", "return self.parts[task](x)"), tmp_path)
    (said,) = [f for f in follows.report.findings if f.code == "eager-training"]
    assert "self.parts[task] is chosen by an argument" in said.message


def test_parts_that_are_all_called_learn_in_all_rounds(tmp_path: Path) -> None:
    forward = "for k in range(2):\n            x = self.parts[k](x)\n        return x + task"
    assert "@ms.jit" in assert_follows(SEVERAL.replace("FORWARD", forward), tmp_path).text
