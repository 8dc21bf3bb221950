"""The known rules repeat torch's own optimizers, whatever their settings."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from isograd.frameworks.base import FLOAT64, NATIVE  # noqa: E402
from isograd.frameworks.rules import Rule, rule_from  # noqa: E402
from isograd.frameworks.torch.optimizers import UpdateLog  # noqa: E402
from isograd.tensors import tensor_value  # noqa: E402

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.8, "momentum": 0.7, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "eps": 1e-3}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"lr": 1.0, "rho": 0.8, "eps": 1e-3}),
    ("Adamax", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-2}),
    ("NAdam", {"lr": 0.01, "momentum_decay": 0.1}),
]


def halving(kind: Any) -> Any:
    """A subclass whose own step halves the gradients before it calls its parent's."""

    class Halving(kind):
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad *= 0.5
            return super().step(closure)

    return Halving


def fed(name: str, settings: dict[str, Any], kind: Any = None) -> UpdateLog:
    """A log of four steps; kind: a class in place of the one of torch's that is named."""
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Linear(5, 3).double()
    optimizer = (kind or getattr(torch.optim, name))(model.parameters(), **settings)
    indices = {n: tensor_value(np.arange(p.numel())) for n, p in model.named_parameters()}
    log = UpdateLog(model, optimizer, indices)
    for _ in range(4):
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.grad = drawn
        with log.step():
            optimizer.step()
    return log


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_torchs_optimizers_are_understood(name: str, settings: dict[str, Any]) -> None:
    outline = fed(name, settings).outline()
    assert outline
    assert all(found["rule"] is not None for found in outline.values())


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_the_own_step_of_a_subclass_is_looked_through(name: str, settings: dict[str, Any]) -> None:
    """AdamW inherits its step from Adam."""
    kind = getattr(torch.optim, name)
    before = inspect.unwrap(kind.step)
    outline = fed(name, settings, halving(kind)).outline()
    assert outline
    assert all(found["rule"] is not None for found in outline.values())
    assert inspect.unwrap(kind.step) is before


def test_an_unknown_optimizer_is_not() -> None:
    outline = fed("Rprop", {"lr": 0.01}).outline()
    assert all(found["rule"] is None for found in outline.values())


def test_a_rule_survives_the_pipe() -> None:
    plain = fed(*OPTIMIZERS[3]).outline()["weight"]["rule"]
    rule = rule_from(plain)
    assert isinstance(rule, Rule)
    assert rule_from(rule.plain()) == rule


def test_the_envelope_of_a_rule_is_of_the_order_of_rounding() -> None:
    log = fed(*OPTIMIZERS[5])
    rules = {n: found["rule"] for n, found in log.outline().items()}
    found = log.measure(rules, [FLOAT64, NATIVE], {}, True, "float32")
    for name in rules:
        size = np.linalg.norm(found[f"expected.{name}"].values, axis=1)
        share = found[f"allowed.{name}"].values / size
        assert ((share > 1e-8) & (share < 1e-6)).all()
