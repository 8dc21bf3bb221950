"""Which functions with gradients of their own become cells, and which keep torch's form."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

HEAD = "import torch\n\n\nclass Own(torch.autograd.Function):\n"
USE = "\n\ndef f(x: torch.Tensor):\n    return Own.apply(x)\n"


def _written(forward: str, backward: str, use: str = USE) -> str:
    """The port of a function of these methods."""
    methods = "".join(
        f"    @staticmethod\n    def {method.strip()}\n\n" for method in (forward, backward)
    )
    return port_of(HEAD + methods + use)[0]


PASSED_ON = "backward(ctx, g):\n        return g"


@pytest.mark.parametrize(
    ("forward", "backward", "line"),
    [
        pytest.param(
            "forward(ctx, x):\n        return x.sign()",
            PASSED_ON,
            "def bprop(self, x, out, g):\n        return (g,)",
            id="nothing is kept",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sign()",
            "backward(ctx, g):\n        x, = ctx.saved_tensors\n        return g * x",
            "def bprop(self, x, out, g):\n        return (g * x,)",
            id="an input under its name",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sign()",
            "backward(ctx, g):\n        return g * ctx.saved_tensors[0]",
            "return (g * x,)",
            id="an input by its number",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sign()",
            "backward(ctx, g):\n        (x,) = ctx.saved_variables\n        return g * x",
            "def bprop(self, x, out, g):\n        return (g * x,)",
            id="an input by the old name of what is saved",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sign()",
            "backward(ctx, g):\n        return g * ctx.saved_variables[0]",
            "return (g * x,)",
            id="an input by its number and that old name",
        ),
        pytest.param(
            "forward(ctx, x):\n        y = x.exp()\n        ctx.save_for_backward(y)\n"
            "        return y",
            "backward(ctx, g):\n        (y,) = ctx.saved_tensors\n        return g * y",
            "(y,) = (out,)",
            id="the output",
        ),
        pytest.param(
            "forward(ctx, x, k):\n        ctx.k, ctx.n = k, 2\n        return x * k",
            "backward(ctx, g):\n        return g * ctx.k, None",
            "class Own(compat.",
            id="two numbers kept in one statement stay torch's",
        ),
        pytest.param(
            "forward(ctx, x, k):\n        ctx.k = k\n        return x * k",
            "backward(ctx, g):\n        k = ctx.k\n        return g * k, None",
            "def bprop(self, x, k, out, g):\n        return g * k, compat.no_gradient(k)",
            id="a number under its name",
        ),
        pytest.param(
            "forward(ctx, x):\n        y = x.exp()\n        ctx.save_for_backward(y)\n"
            "        return y.log1p()",
            "backward(ctx, g):\n        (y,) = ctx.saved_tensors\n        return g * y",
            "def bprop(self, x, out, dout):\n        g = dout[0]\n        (y,) = (out[1],)",
            id="what forward computes on its way",
        ),
        pytest.param(
            "forward(ctx, x, y):\n        return x * y, x + y",
            "backward(ctx, a: torch.Tensor, b: torch.Tensor):\n"
            "        none = None\n        return a + b, none",
            "def bprop(self, x, y, out, dout):\n        a, b = dout\n",
            id="two outputs, and None by a name",
        ),
    ],
)
def test_a_gradient_of_inputs_outputs_and_numbers_is_a_cells(
    forward: str, backward: str, line: str
) -> None:
    text = _written(forward, backward)
    assert line in text
    is_alone = "Own.apply = compat.ResultAlone(Own(), 1)" in text
    assert ("Own.apply = Own()" in text or is_alone) is ("def bprop" in text)


@pytest.mark.parametrize(
    ("forward", "backward", "use"),
    [
        pytest.param(
            "forward(ctx, x):\n        y = count(x)\n        ctx.save_for_backward(y)\n"
            "        return x.log1p()",
            "backward(ctx, g):\n        (y,) = ctx.saved_tensors\n        return g * y",
            USE,
            id="what forward computes on its way, perhaps no tensor",
        ),
        pytest.param(
            "forward(ctx, x):\n        y = x.exp()\n        y = y + 1\n"
            "        ctx.save_for_backward(y)\n        return y.log1p()",
            "backward(ctx, g):\n        (y,) = ctx.saved_tensors\n        return g * y",
            USE,
            id="a name of forward's that is bound twice",
        ),
        pytest.param(
            "forward(ctx, x):\n        x.mul_(2)\n        ctx.save_for_backward(x)\n"
            "        return x.sin()",
            "backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * x",
            USE,
            id="an input that is written before",
        ),
        pytest.param(
            "forward(ctx, x):\n        double(x)\n        ctx.save_for_backward(x)\n"
            "        return x.sin()",
            "backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * x",
            USE + "\n\ndef double(x):\n    x.mul_(2)\n",
            id="an input that a function of the file writes into",
        ),
        pytest.param(
            "forward(ctx, x):\n        y = x.view(-1)\n        y.mul_(2)\n"
            "        ctx.save_for_backward(x)\n        return x.sin()",
            "backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * x",
            USE,
            id="an input that is written by another name",
        ),
        pytest.param(
            "forward(ctx, x):\n        y = torch.nn.functional.relu(x, inplace=True)\n"
            "        ctx.save_for_backward(x)\n        return y.sin()",
            "backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * x",
            USE,
            id="an input that a function writes into by a keyword",
        ),
        pytest.param(
            "forward(ctx, x):\n        return x.sin()",
            "backward(ctx, g):\n        saved = ctx.saved_tensors\n        return g * len(saved)",
            USE,
            id="tensors are fetched that nobody saved",
        ),
        pytest.param(
            "forward(ctx, x, y):\n        return x * y",
            "backward(ctx, g):\n        a = b = None\n        if ctx.needs_input_grad[0]:\n"
            "            a = g\n        return a, b",
            USE,
            id="what the context knows of gradients",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.sin()",
            "backward(ctx, g):\n        (a,) = ctx.saved_tensors\n        x = g * a\n"
            "        return x",
            USE,
            id="an input's name for something else",
        ),
        pytest.param("forward(ctx, x=1):\n        return x", PASSED_ON, USE, id="a default"),
        pytest.param(
            "forward(ctx, x):\n        return x.sign()",
            PASSED_ON,
            USE + "\n\ndef h(x):\n    return Own.forward(None, x)\n",
            id="another member is used",
        ),
        pytest.param(
            "forward(ctx, x):\n        ctx.mark_dirty(x)\n        return x.add_(1)",
            PASSED_ON,
            USE,
            id="an input that is the output",
        ),
        pytest.param(
            "forward(ctx, x, y):\n        return x * y",
            "backward(ctx, g):\n        return both(g)",
            USE,
            id="gradients in a tuple that is not written out",
        ),
    ],
)
def test_any_other_keeps_torchs_form(forward: str, backward: str, use: str) -> None:
    text = _written(forward, backward, use)
    assert "class Own(compat.Function):" in text
    assert "@staticmethod" in text
    assert "bprop" not in text


OLD_NAMES = (
    HEAD
    + """    @staticmethod
    def forward(ctx, x):
        half = x / 2
        ctx.save_for_backward(half)
        return half.exp()

    @staticmethod
    def backward(ctx, slope):
        (half,) = ctx.saved_variables
        return slope * half * len(ctx.saved_tensors)


def slope():
    x = torch.ones(2, requires_grad=True)
    (Own.apply(x) * 3).sum().backward()
    return x.grad.tolist()
"""
)


def test_torchs_form_has_the_old_name_of_what_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"own.py": OLD_NAMES})
    assert not report.needs_action
    of_torch, of_port = run_both(tmp_path, port, "import json, own; print(json.dumps(own.slope()))")
    assert of_port == of_torch == [1.5, 1.5]


WHAT_LEARNS = (
    HEAD
    + """    @staticmethod
    def forward(ctx, x, at, picked):
        ctx.learned = [x.requires_grad, at.requires_grad, picked.requires_grad]
        SEEN.append(ctx.learned)
        ctx.save_for_backward(at)
        return x[at]

    @staticmethod
    def backward(ctx, slope):
        (at,) = ctx.saved_tensors
        return torch.zeros(3).index_add_(0, at, slope), None, None


SEEN = []


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        x = self.layer(x)
        return Own.apply(x, (x * 0 + 1).nonzero()[:, 0], x > 0)


def seen():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad()
    net(torch.ones(3)).sum().backward()
    optimizer.step()
    return SEEN[:1]
"""
)


def test_integers_and_booleans_do_not_learn(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"own.py": WHAT_LEARNS})
    assert not report.needs_action
    of_torch, of_port = run_both(tmp_path, port, "import json, own; print(json.dumps(own.seen()))")
    assert of_port == of_torch == [[True, False, False]]


INHERITED = """
import torch


class Base(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x, scale):
        ctx.scale = scale
        ctx.save_for_backward(x)
        return cls.act(x) * scale

    @classmethod
    def backward(cls, ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * ctx.scale, None


class Squared(Base):
    @classmethod
    def act(cls, x):
        return x**2

    @classmethod
    def forward(cls, ctx, x, scale=3.0):
        return super().forward(ctx, x, scale)


class Plain:
    def forward(self, x):
        return x + 1


class Twice(Plain):
    def forward(self, x):
        return super().forward(x) * 2


def found():
    x = torch.ones(2, requires_grad=True)
    y = Squared.apply(x, 2.0)
    y.sum().backward()
    return y.tolist(), Squared.apply(x).tolist(), x.grad.tolist(), Twice().forward(1)
"""


def test_what_a_class_above_has_keeps_its_name(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"own.py": INHERITED})
    assert not report.needs_action
    code = "import json, own; print(json.dumps(own.found()))"
    of_torch, of_port = run_both(tmp_path, port, code)
    assert of_port == of_torch


CARRIED = """
import torch
from torch import nn


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(gate, w)
        return x * gate * w

    @staticmethod
    def backward(ctx, slope):
        gate, w = ctx.saved_tensors
        return slope * gate * w, (slope * gate).sum(0)


class Parts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = x > x.mean()
        best, place = x.max(-1)
        ctx.mask = mask
        ctx.place = place
        return x * 2, best

    @staticmethod
    def backward(ctx, whole, best):
        picked = torch.nn.functional.one_hot(ctx.place, 3) * best.unsqueeze(-1)
        return (whole * 2 + picked) * ctx.mask.float()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))

    def forward(self, x):
        whole, best = Parts.apply(x * self.w)
        return (Gated.apply(whole, self.w) ** 2).sum() + (best**3).sum()
"""


def test_what_forward_computes_on_its_way_compiles(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": CARRIED})
    assert not report.needs_action
    code = """
    import json
    import net
    made = net.Net()
    x = TENSOR([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]])
    if hasattr(made, "construct"):
        import mindspore as ms
        of = ms.value_and_grad(made, 0, made.trainable_params())
        found = [one(x) for one in (of, ms.jit(of))]
        slopes = [[loss, slope, weight] for loss, (slope, (weight,)) in found]
    else:
        x.requires_grad_()
        loss = made(x)
        loss.backward()
        slopes = [[loss, x.grad, made.w.grad]] * 2
    print(json.dumps([[part.reshape(-1).tolist() for part in one] for one in slopes]))
    """
    expected, found = run_both(tmp_path, port, code)
    for mode, of_mode in zip(found, expected, strict=True):
        for part, of_torch in zip(mode, of_mode, strict=True):
            assert part == pytest.approx(of_torch, rel=1e-4)
