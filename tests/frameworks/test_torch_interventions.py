"""Functions of a torch network are found and changed where its code calls them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from isograd.frameworks.base import Intervention, Operand, Place
from isograd.frameworks.torch.interventions import Interventions, intervening


class Block(nn.Module):
    """A module, a function, an operator and a function in place."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.act = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.norm(x)) * 2.0
        y += x
        return F.softmax(y, dim=-1)


@pytest.fixture
def block() -> Block:
    torch.manual_seed(0)
    return Block()


X = torch.linspace(-2, 2, 24).reshape(4, 6)


def sites(model: nn.Module) -> Interventions:
    watcher = Interventions(dict(model.named_modules()), note=True)
    given = X.clone()
    watcher.know(given, "input.0")
    with watcher.watching(""), watcher:
        model(given)
    return watcher


def test_sites_name_functions_modules_and_operands(block: Block) -> None:
    found = {(s.place.module, s.place.function): s for s in sites(block).sites}

    assert found["norm", "layer_norm"].arguments["eps"] == 1e-5
    assert found["act", "gelu"].arguments["approximate"] == "none"
    assert found["act", "module"].kind == "GELU"
    assert found["", "mul"].arguments["other"] == 2.0
    assert found["", "softmax"].arguments["dim"] == -1
    source = found["norm", "layer_norm"].arguments["input"]
    assert isinstance(source, Operand)
    assert source.source == "input.0"
    weight = found["norm", "layer_norm"].arguments["weight"]
    assert isinstance(weight, Operand)
    assert weight.source == "parameter.norm.weight"


@pytest.mark.parametrize(
    ("place", "changed", "expected"),
    [
        (
            Place("act", "gelu", 0),
            {"approximate": "tanh"},
            lambda b: F.softmax(F.gelu(b.norm(X), approximate="tanh") * 2.0 + X, -1),
        ),
        (
            Place("", "softmax", 0),
            {"dim": 0},
            lambda b: F.softmax(b.act(b.norm(X)) * 2.0 + X, 0),
        ),
        (
            Place("", "add", 0),
            {"other": torch.zeros(4, 6)},
            lambda b: F.softmax(b.act(b.norm(X)) * 2.0, -1),
        ),
        (
            Place("norm", "module", 0),
            {"0": 3.0 * X},
            lambda b: F.softmax(b.act(b.norm(3.0 * X)) * 2.0 + X, -1),
        ),
    ],
    ids=["in a module", "function", "in place", "module"],
)
def test_a_changed_function_changes_all_behind_it(block, place, changed, expected) -> None:  # type: ignore[no-untyped-def]
    one = Intervention(place, lambda call, values: call.run(**values), changed)
    with intervening(block, (one,)):
        found = block(X.clone())
    torch.testing.assert_close(found, expected(block))


def test_everything_is_undone(block: Block) -> None:
    before = block(X.clone())
    one = Intervention(Place("act", "gelu", 0), lambda call, values: call["input"])
    with intervening(block, (one,)):
        changed = block(X.clone())
    assert not torch.equal(before, changed)
    assert torch.equal(before, block(X.clone()))
    assert all("forward" not in module.__dict__ for module in block.modules())


def test_gradients_flow_through_a_change(block: Block) -> None:
    x = X.clone().requires_grad_()
    one = Intervention(Place("", "mul", 0), lambda call, values: call.run(other=5.0))
    with intervening(block, (one,)):
        block(x)[0, 0].backward()
    assert x.grad is not None
    assert torch.count_nonzero(x.grad) > 0


def test_multi_head_attention_is_looked_into() -> None:
    model = nn.MultiheadAttention(6, 2, batch_first=True)
    watcher = Interventions(dict(model.named_modules()), note=True)
    x = X.reshape(1, 4, 6)
    with watcher.watching(""), watcher:
        model(x, x, x)
    assert "softmax" in {s.place.function for s in watcher.sites}
