"""Every hypothesis with the real frameworks: one right and one wrong optimizer each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SGD = "return torch.optim.SGD(parameters, lr=0.1)"
MOMENTUM = "return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)"
ADAM = "return torch.optim.Adam(parameters, lr=0.01, eps=1e-6)"
ADAMW = "return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)"
RMSPROP = "return torch.optim.RMSprop(parameters, lr=0.01, alpha=0.9)"
GROUPS = """
groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
return torch.optim.SGD(groups, lr=0.1, momentum=0.9)
"""
WARM_UP = """
sgd = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
return sgd, LambdaLR(sgd, lambda step: (step + 1) / 10)
"""
CLIPPED = """
adam = torch.optim.AdamW(parameters, lr=0.01, eps=1e-3)
def clip(*_):
    nn.utils.clip_grad_norm_(parameters, 0.5)
adam.register_step_pre_hook(clip)
return adam
"""
CLIPPING_CLASS = """
class Clipped(torch.optim.SGD):
    def step(self, closure=None):
        nn.utils.clip_grad_norm_(parameters, 0.05)
        return super().step(closure)
return Clipped(parameters, lr=0.1, momentum=0.9)
"""
WRAPPED = """
class Wrapper:
    def __init__(self, inner):
        self.inner = inner
    def step(self):
        nn.utils.clip_grad_value_(parameters, 0.01)
        self.inner.step()
return Wrapper(torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
"""


def before(optimizer: str, change: str) -> str:
    return f"return Before({optimizer}, {change})"


CLEAN = {
    "sgd": (SGD, "return nn.SGD(parameters, learning_rate=0.1)"),
    "momentum": (MOMENTUM, "return nn.Momentum(parameters, learning_rate=0.1, momentum=0.9)"),
    "groups": (
        GROUPS,
        """
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors}]
        return nn.SGD(groups, learning_rate=0.1, momentum=0.9)
        """,
    ),
    "adamw": (ADAMW, "return optim.AdamW(parameters, lr=0.01, weight_decay=0.1)"),
    "rmsprop": (RMSPROP, "return optim.RMSprop(parameters, lr=0.01, alpha=0.9)"),
    "clipped": (CLIPPED, before("optim.AdamW(parameters, lr=0.01, eps=1e-3)", "by_norm(0.5)")),
    "clipping class": (
        CLIPPING_CLASS,
        before("nn.SGD(parameters, 0.1, momentum=0.9)", "by_norm(0.05)"),
    ),
}

# Right, wrong, the causes (those behind | may be left as alternatives), part of the words.
WRONG = {
    "lr": (MOMENTUM, "return nn.SGD(parameters, 0.1037, momentum=0.9)", ["optimizer.lr"],
           "lr 0.1037 instead of 0.1"),
    "lr of sgd": (SGD, "return nn.SGD(parameters, 0.11)", ["optimizer.lr"], "lr 0.11 "),
    "momentum": (MOMENTUM, "return nn.SGD(parameters, 0.1, momentum=0.873)",
                 ["optimizer.momentum"], "momentum 0.873 instead of 0.9"),
    "no momentum": (MOMENTUM, "return nn.SGD(parameters, 0.1)", ["optimizer.momentum"],
                    "momentum 0 instead of 0.9"),
    "new momentum": (SGD, "return nn.SGD(parameters, 0.1, momentum=0.5)",
                     ["optimizer.momentum"], "momentum 0.5 instead of 0"),
    "dampening": (MOMENTUM, "return nn.SGD(parameters, 0.1, momentum=0.9, dampening=0.17)",
                  ["optimizer.dampening"], "dampening 0.17 instead of 0"),
    "nesterov": (MOMENTUM, "return nn.SGD(parameters, 0.1, momentum=0.9, nesterov=True)",
                 ["optimizer.nesterov"], "Nesterov momentum instead of plain momentum"),
    "betas": (ADAMW, "return optim.AdamW(parameters, 0.01, (0.9, 0.99), weight_decay=0.1)",
              ["optimizer.betas"], "betas (0.9, 0.99) instead of (0.9, 0.999)"),
    "first beta": (ADAMW, "return optim.AdamW(parameters, 0.01, (0.83, 0.999), weight_decay=0.1)",
                   ["optimizer.betas"], "betas (0.83, 0.999)"),
    "both betas": (ADAMW, "return optim.AdamW(parameters, 0.01, (0.8, 0.97), weight_decay=0.1)",
                   ["optimizer.betas"], "betas (0.8, 0.97)"),
    "eps": (ADAM, "return optim.AdamW(parameters, 0.01, eps=3e-5, weight_decay=0.0)",
            ["optimizer.eps"], "eps 3e-5 instead of 1e-6"),
    "eps before correction": (ADAM, "return nn.Adam(parameters, 0.01, eps=1e-6)",
                              ["optimizer.eps"], "before bias correction"),
    "eps inside": (RMSPROP.replace("alpha", "eps=1e-4, alpha"),
                   "return Inside(parameters, 0.01, 0.9, 1e-4)", ["optimizer.eps"],
                   "inside the root"),
    "no bias correction": (
        ADAMW, "return nn.AdamWeightDecay([{'params': parameters}], 0.01, eps=1e-8, "
        "weight_decay=0.1)", ["optimizer.bias_correction"], "no bias correction"),
    "no decay at all": (GROUPS, "return nn.SGD(parameters, 0.1, momentum=0.9)",
                        ["optimizer.weight_decay"], "weight decay 0 instead of 0.01"),
    "other decay": (ADAMW, "return optim.AdamW(parameters, lr=0.01, weight_decay=0.037)",
                    ["optimizer.weight_decay"], "weight decay 0.037 instead of 0.1"),
    "decay on too many": (
        GROUPS, "return nn.SGD([{'params': parameters}], 0.1, momentum=0.9, weight_decay=0.01)",
        ["optimizer.no_decay"], "group 1"),
    "decay on too few": (ADAMW, """
        groups = [{"params": parameters[1:], "weight_decay": 0.1},
                  {"params": parameters[:1], "weight_decay": 0.0}]
        return optim.AdamW(groups, lr=0.01)
        """, ["optimizer.no_decay"], "1 parameter (conv.weight)"),
    "coupled decay": (
        "return torch.optim.AdamW(parameters, lr=0.01, eps=1e-15, weight_decay=0.1)",
        "return optim.Adam(parameters, lr=0.01, eps=1e-15, weight_decay=0.1)",
        ["optimizer.decoupled"], "decay added to the gradient"),
    "alpha": (RMSPROP, "return optim.RMSprop(parameters, lr=0.01, alpha=0.93)",
              ["optimizer.alpha"], "alpha 0.93 instead of 0.9"),
    "initial state": (RMSPROP, "return nn.RMSProp(parameters, 0.01, 0.9, epsilon=1e-8)",
                      ["optimizer.initial_state"], "initial mean square 1 instead of 0"),
    "accumulator": ("return torch.optim.Adagrad(parameters, 0.01)",
                    "return nn.Adagrad(parameters, learning_rate=0.01)",
                    ["optimizer.initial_state"], "initial accumulator 0.1 instead of 0"),
    "centered": (RMSPROP, "return optim.RMSprop(parameters, 0.01, 0.9, centered=True)",
                 ["optimizer.centered"], "the centered mean square"),
    "amsgrad": (ADAMW, "return optim.AdamW(parameters, lr=0.01, weight_decay=0.1, amsgrad=True, "
                "betas=(0.9, 0.999))", ["optimizer.amsgrad"], "AMSGrad"),
    "maximize": (ADAMW, "return optim.AdamW(parameters, lr=0.01, weight_decay=0.1, maximize=True)",
                 ["optimizer.maximize"], "ascent"),
    "schedule ahead": (
        WARM_UP, "return nn.SGD(parameters, [0.02 + 0.01 * i for i in range(20)], momentum=0.9)",
        ["optimizer.schedule"], "1 step ahead"),
    "schedule missing": (WARM_UP, "return nn.SGD(parameters, 0.1, momentum=0.9)",
                         ["optimizer.schedule"], "stays at 0.1"),
    "schedule added": (
        MOMENTUM, "return nn.SGD(parameters, [0.1, 0.1, 0.1, 0.05, 0.05, 0.05], momentum=0.9)",
        ["optimizer.schedule"], "1, 1, 1, 0.5, 0.5, 0.5 times"),
    "schedule from nothing": (
        WARM_UP, "return nn.SGD(parameters, [0.0, *[0.015] * 9], momentum=0.9)",
        ["optimizer.schedule"], "are 0, 0.75, 0.5,"),
    "clip missing": (CLIPPED, "return optim.AdamW(parameters, lr=0.01, eps=1e-3)",
                     ["optimizer.clip"], "instead of clipped by the global norm at 0.5"),
    "clip out of reach": (CLIPPING_CLASS, before("nn.SGD(parameters, 0.1, momentum=0.9)",
                                                 "by_norm(1000.0)"),
                          ["optimizer.clip"], "not clipped (up to a global norm of"),
    "other norm": (CLIPPING_CLASS, before("nn.SGD(parameters, 0.1, momentum=0.9)", "by_norm(0.07)"),
                   ["optimizer.clip"], "clipped by the global norm at 0.07 instead of"),
    "clip by value": (
        CLIPPING_CLASS, before("nn.SGD(parameters, 0.1, momentum=0.9)",
                               "lambda gs: [ops.clamp(g, -0.05, 0.05) for g in gs]"),
        ["optimizer.clip"], "clipped by value at 0.05"),
    "clip each": (
        CLIPPING_CLASS, before("nn.SGD(parameters, 0.1, momentum=0.9)",
                               "lambda gs: [by_norm(0.05)([g])[0] for g in gs]"),
        ["optimizer.clip"], "by the norm of each parameter at 0.05"),
    "clip added": (MOMENTUM, before("nn.SGD(parameters, 0.1, momentum=0.9)", "by_norm(0.2)"),
                   ["optimizer.clip"], "clipped by the global norm at 0.2 instead of not clipped"),
    "clip by value missing": (WRAPPED, "return nn.SGD(parameters, 0.1, momentum=0.9)",
                              ["optimizer.clip"], "instead of clipped by value at 0.01"),
    "loss scale": (GROUPS, """
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors}]
        return nn.SGD(groups, learning_rate=0.1, momentum=0.9, loss_scale=1024.0)
        """, ["gradient.scale"], "1/1024 times"),
    "averaged": (ADAM, before("optim.AdamW(parameters, 0.01, eps=1e-6, weight_decay=0.0)",
                              "lambda gs: [g * 3 for g in gs]"), ["gradient.scale"], "3 times"),
    "frozen": (MOMENTUM, before(
        "nn.SGD(parameters, 0.1, momentum=0.9)",
        "lambda gs: [g * 0 if i == 4 else g for i, g in enumerate(gs)]"),
        ["optimizer.frozen"], "head.weight"),
    "left out": (MOMENTUM, "return nn.SGD(parameters[1:], 0.1, momentum=0.9)",
                 ["optimizer.frozen"], "conv.weight"),
    "another kind": (ADAMW, "return nn.SGD(parameters, 0.05, momentum=0.9)",
                     ["optimizer.kind"], "SGD with momentum with lr 0.05 instead of AdamW"),
    "adam for sgd": (MOMENTUM, "return optim.AdamW(parameters, 0.001, weight_decay=0.0)",
                     ["optimizer.kind"], "Adam with lr 0.001 instead of SGD"),
    "lr and decay": (
        ADAMW, "return optim.AdamW(parameters, lr=0.02, weight_decay=0.01)",
        ["optimizer.lr", "optimizer.weight_decay"], "lr 0.02 instead of 0.01"),
    "betas and eps": (
        ADAMW, "return optim.AdamW(parameters, 0.01, (0.9, 0.95), eps=1e-4, weight_decay=0.1)",
        ["optimizer.betas", "optimizer.eps"], "eps 0.0001 instead of 1e-8"),
    "one group's lr": (GROUPS, """
        groups = [{"params": matrices, "weight_decay": 0.01, "lr": 0.1},
                  {"params": vectors, "lr": 0.05}]
        return nn.SGD(groups, learning_rate=0.1, momentum=0.9)
        """, ["optimizer.lr"], "group 1 (3 parameters"),
    "two groups, two causes": (GROUPS, """
        groups = [{"params": matrices, "weight_decay": 0.0}, {"params": vectors, "lr": 0.05}]
        return nn.SGD(groups, learning_rate=0.1, momentum=0.9)
        """, ["optimizer.lr", "optimizer.weight_decay"], "weight decay 0 instead of 0.01"),
}  # fmt: skip

#: MindSpore has no RMSProp with eps inside the root that starts at zero.
INSIDE = (
    "    class Before:",
    """    class Inside(nn.Optimizer):
        def __init__(self, parameters, lr, alpha, eps):
            super().__init__(lr, parameters)
            self.alpha, self.eps = alpha, eps
            self.squares = [ops.zeros_like(p) for p in parameters]

        def construct(self, gradients):
            for i, (p, g) in enumerate(zip(self.parameters, gradients)):
                self.squares[i] = self.squares[i] * self.alpha + g * g * (1 - self.alpha)
                p.set_data(p - self.get_lr() * g / ops.sqrt(self.squares[i] + self.eps))
            return True

    class Before:""",
)
NOT_PROVED = {"frozen"}


@pytest.mark.parametrize("name", CLEAN)
def test_a_right_optimizer_stays_silent(name: str, compare: Callable[..., Any]) -> None:
    outcome = compare(*CLEAN[name])
    assert not outcome.result.first
    assert not outcome.findings


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_optimizer_is_named(name: str, compare: Callable[..., Any]) -> None:
    reference, port, causes, words = WRONG[name]
    outcome = compare(reference, port, port_net=INSIDE)
    assert outcome.causes == sorted(causes), outcome.explain()
    texts = [f.cause.text for f in outcome.findings]
    assert any(words in text for text in texts), outcome.explain()
    assert all(f.cause.proved for f in outcome.findings) or name in NOT_PROVED, outcome.explain()
    assert all(f.fix.where and "net_port.py" in f.fix.where for f in outcome.findings)
    # What is granted is not blamed again.
    assert not outcome.training.first, outcome.explain()


def test_an_independent_fault_is_still_found(compare: Callable[..., Any]) -> None:
    outcome = compare(
        MOMENTUM,
        "return nn.SGD(parameters, 0.1, momentum=0.8)",
        port_net=("BatchNorm2d(5, momentum=0.9)", "BatchNorm2d(5, momentum=0.8)"),
    )
    assert outcome.causes == ["optimizer.momentum"]
    assert set(outcome.training.first) == {"bn.running_mean", "bn.running_var"}


OWN = """
class Own:
    def step(self):
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad.sign()
return Own()
"""


@pytest.mark.parametrize(
    "reference", [OWN, "return torch.optim.Rprop(parameters, lr=0.01)"], ids=["own", "unknown"]
)
def test_what_is_not_understood_is_left_unexplained(
    reference: str, compare: Callable[..., Any]
) -> None:
    outcome = compare(reference, "return nn.SGD(parameters, 0.1)", steps=3)
    assert outcome.result.first
    assert not outcome.findings
    assert outcome.unexplained == set(outcome.result.first)


def test_what_no_hypothesis_explains_is_left_unexplained(compare: Callable[..., Any]) -> None:
    change = "lambda gs: [ops.tanh(40 * g) * ops.cos(9 * g) for g in gs]"
    outcome = compare(MOMENTUM, before("nn.SGD(parameters, 0.1, momentum=0.9)", change), steps=3)
    assert not outcome.findings, outcome.explain()
    assert outcome.unexplained == set(outcome.result.first)
