"""Parameters that get gradients and that no optimizer moves: forgotten ones, and those meant so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from tests.watch.test_torch import Net, batches
from torch import nn

import isograd
from isograd.watch.model import WatchReport


def _trained(folder: Path, net: Net, **which: Any) -> WatchReport:
    """A training of 60 steps; which: `held` parameters, `rate` by step, `every` so many steps."""
    torch.manual_seed(0)
    held, every = which.get("held", list(net.parameters())), which.get("every", 1)
    optimizer = torch.optim.SGD(held, lr=0.05)
    later = which.get("later")
    with isograd.watch(net, folder, every=2):
        for step, (x, y) in enumerate(batches(60)):
            optimizer.param_groups[0]["lr"] = which.get("rate", lambda _: 0.05)(step)
            F.cross_entropy(net(x.clamp(-3, 3)), y).backward()
            if step % every == every - 1:
                optimizer.step()
                optimizer.zero_grad()
            if later is not None and step >= 50:
                later.step()
    return isograd.watch(folder)


def _unchanged(report: WatchReport) -> list[str]:
    return [alert.tensor for alert in report.alerts if alert.code == "weight.unchanged"]


def test_a_parameter_that_gets_gradients_and_that_no_optimizer_holds_is_named(
    tmp_path: Path,
) -> None:
    net = Net()
    held = [*net.first.parameters(), net.last.bias]
    assert _unchanged(_trained(tmp_path / "run", net, held=held)) == ["last.weight"]


def test_a_parameter_that_is_not_to_move_is_no_alert(tmp_path: Path) -> None:
    frozen, late = Net(), Net()
    frozen.last.requires_grad_(False)
    held = [p for p in frozen.parameters() if p.requires_grad]
    assert _unchanged(_trained(tmp_path / "frozen", frozen, held=held)) == []
    later = torch.optim.SGD(late.last.parameters(), lr=0.05)
    held = list(late.first.parameters())
    assert _unchanged(_trained(tmp_path / "later", late, held=held, later=later)) == []
    warm, micro, zero = Net(), Net(), Net()
    assert _unchanged(_trained(tmp_path / "warm", warm, rate=lambda s: 1e-3 * max(0, s - 40))) == []
    assert _unchanged(_trained(tmp_path / "micro", micro, every=4)) == []
    with torch.no_grad():  # nothing passes, so the first layer's gradient is zero
        zero.last.weight.zero_()
    zero.last.weight.requires_grad_(False)
    held = [zero.last.bias]
    assert _unchanged(_trained(tmp_path / "zero", zero, held=held)) == []


def test_a_network_that_judges_gets_gradients_and_is_not_trained(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, judge = Net(), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    with isograd.watch(net, tmp_path / "run", every=2):
        for x, _ in batches(40):
            judge(net(x.clamp(-3, 3))).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert _unchanged(isograd.watch(tmp_path / "run")) == []


def test_two_optimizers_in_turn_on_one_batch_repeat_no_batch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    maker, judge = nn.Linear(8, 4), nn.Linear(4, 1)
    makers = torch.optim.SGD(maker.parameters(), lr=0.01)
    judges = torch.optim.SGD(judge.parameters(), lr=0.01)
    both = nn.ModuleList([maker, judge])
    with isograd.watch(both, tmp_path / "run"):
        for x, _ in batches(12):
            made = maker(x)
            judges.zero_grad()
            judge(made.detach()).square().mean().backward()
            judges.step()
            makers.zero_grad()
            judge(made).square().mean().backward()
            makers.step()
    codes = {alert.code for alert in isograd.watch(tmp_path / "run").alerts}
    assert "input.repeated" not in codes


def test_a_head_that_is_trained_alone_is_no_alert(tmp_path: Path) -> None:
    body = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(body[4].parameters(), lr=0.05)
    torch.manual_seed(0)
    with isograd.watch(body, tmp_path / "run", every=2):
        for x, y in batches(40):
            F.cross_entropy(body(x.clamp(-3, 3)), y).backward()
            optimizer.step()
            body.zero_grad()
    assert _unchanged(isograd.watch(tmp_path / "run")) == []
