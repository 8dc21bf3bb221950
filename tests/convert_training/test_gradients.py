"""`backward` adds to `grad` what torch's adds, wherever the loss was computed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.warm_python import run_python

pytest.importorskip("mindspore")

import mindspore as ms
from mindspore import nn, ops

from isograd.runtime import training_gradients as port
from isograd.runtime import training_optimizers, training_scaling
from isograd.runtime.making import typed

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


class Sides:
    """Two small networks on both sides, with the same weights."""

    def __init__(self) -> None:
        sizes = ((3, 4), (4, 1))
        self.theirs = [torch.nn.Linear(*size) for size in sizes]
        self.ours = [nn.Dense(*size) for size in sizes]
        for mine, other in zip(self.ours, self.theirs, strict=True):
            mine.weight.set_data(ms.Tensor(other.weight.detach().numpy()))
            mine.bias.set_data(ms.Tensor(other.bias.detach().numpy()))
        self.parameters = [p for cell in self.ours for p in cell.trainable_params()]
        self.torch_parameters = [p for module in self.theirs for p in module.parameters()]
        self.optimizer = training_optimizers.SGD(self.parameters, lr=0.1)
        self.torch_optimizer = torch.optim.SGD(self.torch_parameters, lr=0.1)

    def check(self) -> None:
        for mine, other in zip(self.parameters, self.torch_parameters, strict=True):
            held = getattr(mine, "grad", None)
            assert (held is None) == (other.grad is None), mine.name
            if held is not None:
                np.testing.assert_allclose(held.asnumpy(), other.grad.numpy(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(mine.asnumpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.fixture
def sides() -> Sides:
    torch.manual_seed(0)
    return Sides()


#: What happens on one side: (first network, second network, input, side's own words).
Steps = Callable[[Any, Any, Any, Any], None]


class Torch:
    """torch's own words."""

    no_grad = staticmethod(torch.no_grad)
    detach = staticmethod(lambda x: x.detach())
    backward = staticmethod(lambda x, *given, **named: x.backward(*given, **named))
    clip_norm = staticmethod(torch.nn.utils.clip_grad_norm_)
    clip_value = staticmethod(torch.nn.utils.clip_grad_value_)
    ones = staticmethod(torch.ones)


class Port:
    """The port's."""

    no_grad = staticmethod(port.no_grad)
    detach = staticmethod(ops.stop_gradient)
    backward = staticmethod(port.backward)
    clip_norm = staticmethod(port.clip_grad_norm_)
    clip_value = staticmethod(port.clip_grad_value_)
    ones = staticmethod(ops.ones)


def once(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward((second(first(x)) ** 2).mean())


def only_one(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward((first(x) ** 2).mean())


def detached(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward((second(do.detach(first(x))) ** 2).mean())


def without(first: Any, second: Any, x: Any, do: Any) -> None:
    with do.no_grad():
        hidden = first(x)
    do.backward((second(hidden) ** 2).mean())


def several_losses(first: Any, second: Any, x: Any, do: Any) -> None:
    hidden = first(x)
    loss = (second(hidden) ** 2).mean() + 0.1 * (hidden**2).sum()
    do.backward(loss)


def accumulated(first: Any, second: Any, x: Any, do: Any) -> None:
    for part in (x[:2], x[2:]):
        do.backward((second(first(part)) ** 2).sum() / 5)


def penalised(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward((second(first(x)) ** 2).mean() + 0.01 * (first.weight**2).sum())


def shared_between_losses(first: Any, second: Any, x: Any, do: Any) -> None:
    hidden = first(x)
    do.backward((second(do.detach(hidden)) ** 2).mean())
    do.backward((second(hidden) - 1).mean())


def not_scalar(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward(second(first(x)), do.ones((5, 1)) * 0.5)


def in_a_helper(first: Any, second: Any, x: Any, do: Any) -> None:
    def loss_of(output: Any) -> Any:
        return (output**2).mean()

    def finish(loss: Any) -> None:
        do.backward(loss)

    finish(loss_of(second(first(x))))


def clipped(first: Any, second: Any, x: Any, do: Any) -> None:
    do.backward((second(first(x)) ** 2).sum() * 100)
    do.clip_norm([first.weight, first.bias], 0.5)
    do.clip_value([second.weight], 0.1)


def kept_for_another(first: Any, second: Any, x: Any, do: Any) -> None:
    hidden = first(x)
    loss = (second(hidden) ** 2).mean()
    do.backward(loss, retain_graph=True)
    do.backward((hidden**2).sum() * 0.1 + loss, retain_graph=True)
    do.backward(loss)


def kept_over_a_step(first: Any, second: Any, x: Any, do: Any) -> None:
    hidden = first(x)
    for part in (hidden[:2], hidden[2:]):
        do.backward((second(part) ** 2).mean(), retain_graph=True)
    do.backward(second(hidden).sum())


WAYS: list[Steps] = [
    once,
    only_one,
    detached,
    without,
    several_losses,
    accumulated,
    penalised,
    shared_between_losses,
    not_scalar,
    in_a_helper,
    clipped,
    kept_for_another,
    kept_over_a_step,
]


@pytest.mark.parametrize("way", WAYS)
def test_gradients_follow_torch(way: Steps, sides: Sides) -> None:
    for _ in range(3):
        sides.optimizer.zero_grad()
        sides.torch_optimizer.zero_grad()
        way(*sides.ours, ms.Tensor(X), Port)
        way(*sides.theirs, torch.from_numpy(X), Torch)
        sides.check()
        sides.optimizer.step()
        sides.torch_optimizer.step()
        sides.check()


def test_parameters_of_no_optimizer_are_found() -> None:
    port.record_gradients()
    cell = nn.Dense(3, 2)
    port.backward(cell(ms.Tensor(X)).sum())
    np.testing.assert_allclose(cell.bias.grad.asnumpy(), [5, 5])
    port.zero_grad(cell)
    assert cell.bias.grad is None


def test_frozen_parameters_get_none(sides: Sides) -> None:
    sides.ours[0].weight.requires_grad = False
    port.backward(sides.ours[1](sides.ours[0](ms.Tensor(X))).mean())
    assert getattr(sides.ours[0].weight, "grad", None) is None
    assert sides.ours[0].bias.grad is not None


@pytest.mark.parametrize("switch", [port.no_grad, port.inference_mode])
def test_functions_record_nothing(switch: Any, sides: Sides) -> None:
    @switch()
    def compute() -> Any:
        assert not port.is_grad_enabled()
        return sides.ours[0](ms.Tensor(X)).sum()

    with pytest.raises(RuntimeError, match="does not require grad"):
        port.backward(compute())
    assert port.is_grad_enabled()
    bare = switch(compute)
    assert float(bare()) == float(compute())


def test_switch_sets_and_undoes() -> None:
    with port.set_grad_enabled(False):
        assert not port.is_grad_enabled()
        with port.enable_grad():
            assert port.is_grad_enabled()
    assert port.is_grad_enabled()
    port.set_grad_enabled(False)
    assert not port.is_grad_enabled()
    port.set_grad_enabled(True)


def test_batch_norm_counts_a_forward_once() -> None:
    norm, ours = torch.nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    ours.set_train()
    training_optimizers.SGD(ours.trainable_params(), lr=0.1)
    norm(torch.from_numpy(X)).sum().backward()
    port.backward(ours(ms.Tensor(X)).sum())
    np.testing.assert_allclose(ours.moving_mean.asnumpy(), norm.running_mean.numpy(), atol=1e-6)


def test_scaler_skips_what_overflows(sides: Sides) -> None:
    scaler = port.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    first, second = sides.ours
    before = first.weight.asnumpy().copy()
    for factor, scale in ((float("inf"), 2.0), (1.0, 2.0), (1.0, 4.0)):
        sides.optimizer.zero_grad()
        loss = (second(first(ms.Tensor(X))) ** 2).mean() * factor
        port.backward(scaler.scale(loss))
        scaler.step(sides.optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
        is_moved = not np.array_equal(first.weight.asnumpy(), before)
        assert is_moved == math.isfinite(factor)


def test_scaler_gives_the_same_step(sides: Sides) -> None:
    scaler = port.GradScaler("cpu", init_scale=1024.0)
    once(*sides.theirs, torch.from_numpy(X), Torch)
    sides.torch_optimizer.step()
    first, second = sides.ours
    port.backward(scaler.scale((second(first(ms.Tensor(X))) ** 2).mean()))
    scaler.unscale_(sides.optimizer)
    scaler.step(sides.optimizer)
    sides.check()


def test_a_graph_that_is_not_kept_is_gone(sides: Sides) -> None:
    loss = sides.ours[0](ms.Tensor(X)).sum()
    port.backward(loss)
    with pytest.raises(RuntimeError, match="twice"):
        port.backward(loss)


def test_what_kept_gradients_were_computed_from_is_not_recorded(sides: Sides) -> None:
    first = sides.ours[0]
    loss = (first(ms.Tensor(X)) ** 2).sum()
    port.backward(loss, retain_graph=True)
    assert first.weight.grad._grad_node is None
    (found,) = port.gradients(loss, first.weight, retain_graph=True)
    np.testing.assert_allclose(found.asnumpy(), first.weight.grad.asnumpy(), rtol=1e-6)
    assert found._grad_node is None


def test_gradients_of_gradients_are_refused(sides: Sides) -> None:
    loss = sides.ours[0](ms.Tensor(X)).sum()
    for ask in (port.backward, port.backward_of_all):
        with pytest.raises(RuntimeError, match="compile"):
            ask(loss, create_graph=True)
    with pytest.raises(RuntimeError, match="compile"):
        port.gradients(loss, sides.ours[0].weight, create_graph=True)


SECOND = """
import json
import mindspore as ms

X, W = ms.Tensor([[0.5, -1.0], [0.2, 0.3]]), ms.Tensor([[0.3, 0.7], [-0.4, 0.1]])


def inner(x, w):
    return ((x @ w) ** 2).sum()


first = ms.grad(inner, 0)


def outer(x, w):
    return (first(x, w) ** 2).sum()


second = ms.grad(outer, 1)


@ms.jit
def compiled(x, w):
    return second(x, w)


print(json.dumps([compiled(X, W).tolist(), second(X, W).tolist()]))
"""


def test_second_derivatives_are_right_where_they_are_compiled(tmp_path: Path) -> None:
    """What the refusal rests on: the same function in PyNative mode is wrong (MindSpore 2.10).

    In a process of its own: isograd's adapter takes `mindspore.jit` away where it was opened.
    """
    (tmp_path / "second.py").write_text(SECOND)
    code = "import runpy; runpy.run_path('second.py', run_name='__main__')"
    done = run_python(code, cwd=tmp_path, imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-3000:]
    compiled, line_by_line = json.loads(done.stdout.splitlines()[-1])
    x = torch.tensor([[0.5, -1.0], [0.2, 0.3]], requires_grad=True)
    w = torch.tensor([[0.3, 0.7], [-0.4, 0.1]], requires_grad=True)
    (kept,) = torch.autograd.grad(((x @ w) ** 2).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad((kept**2).sum(), w)
    np.testing.assert_allclose(compiled, expected.numpy(), rtol=1e-5)
    assert not np.allclose(line_by_line, expected.numpy(), rtol=0.01)


class Own:
    """A class with methods of the same names."""

    def backward(self, loss: float, scale: int = 1) -> float:
        return loss * scale

    def zero_grad(self) -> str:
        return "own"

    def type(self, kind: str = "any") -> str:
        return kind


def test_other_classes_keep_their_own_methods() -> None:
    assert port.backward(Own(), 2.0, scale=3) == 6.0
    assert port.zero_grad(Own()) == "own"
    assert [typed(Own()), typed(Own(), "a kind")] == ["any", "a kind"]


@pytest.mark.parametrize(
    "shape", [(2_000_000, 1), (1, 2_000_000), (1_000_003,), (1500, 1001), (96, 64, 3, 3), ()]
)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_norm_of_a_large_gradient_is_exact(shape: tuple[int, ...], is_compiled: bool) -> None:
    """MindSpore's sum over (n, 1) adds one after another: off by 1e-3 at 2 million elements."""
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    gradients = ms.mutable((ms.Tensor(values), ms.Tensor(np.ones((3, 2), np.float32))))
    if is_compiled:

        @ms.jit
        def clipped(gradients: Any) -> Any:
            return training_scaling.clipped_by_norm(gradients, 1.0)

        norm = clipped(gradients)[1]
    else:
        norm = port.get_total_norm(gradients)
    exact = np.sqrt(np.square(values.astype(np.float64)).sum() + 6)
    assert abs(float(norm.asnumpy()) - exact) <= 3e-7 * exact
