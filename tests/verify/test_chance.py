"""Networks that draw, on both frameworks: right ports pass, and a rate is proved on new draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isograd.convert.run import convert_path

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]

TORCH_DROP = """
class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
    def forward(self, x):
        if not self.training:
            return x
        keep = 1 - self.rate
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * x.new_empty(shape).bernoulli_(keep) / keep
"""
#: As MindSpore's users write it: a dropout of ones.
MINDSPORE_DROP = """
class DropPath(nn.Cell):
    def __init__(self, rate):
        super().__init__()
        self.dropout = nn.Dropout(p=rate)
    def construct(self, x):
        if not self.training:
            return x
        return x * self.dropout(ops.ones((x.shape[0],) + (1,) * (x.ndim - 1)))
"""


@pytest.fixture
def dropping(
    make_case: CaseMaker, verify: Verify, tmp_path: Path
) -> Callable[[str, str], dict[str, Any]]:
    """What verify says of a network that has one torch layer where the port has another."""

    def run(torch_layer: str, mindspore_layer: str, mode: str = "train") -> dict[str, Any]:
        make_case.frameworks = ("torch", "mindspore")
        make_case.spoil_reference = (
            (("def build", f"{TORCH_DROP}\ndef build"),) if ("DropPath" in torch_layer) else ()
        )
        make_case.spoil_reference += (("nn.ReLU()", torch_layer),)
        if "DropPath" in mindspore_layer:
            make_case.spoil = (("def build", f"{MINDSPORE_DROP}\ndef build"),)
        make_case.spoil += (("nn.ReLU()", mindspore_layer),)
        make_case.inputs = "[[inputs]]\nshape = [6, 3, 5, 4]\n"
        make_case.targets = "[[targets]]\nshape = [6, 3, 5, 3]\n"
        make_case.extra = f'[verify]\nsteps = 1\nmode = "{mode}"\ncompiled = "off"\n'
        path = tmp_path / "report.json"
        answer = verify(make_case.write(), "--json", str(path))
        assert answer.error == ""
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return run


@pytest.mark.parametrize(
    ("reference", "port"),
    [
        pytest.param("nn.Dropout2d(0.3)", "nn.Dropout2d(p=0.3)", id="channels"),
        pytest.param("DropPath(0.2)", "DropPath(0.2)", id="a mask by hand, and a dropout of ones"),
    ],
)
def test_a_right_port_passes(
    dropping: Callable[[str, str], dict[str, Any]], reference: str, port: str
) -> None:
    found = dropping(reference, port)
    assert (found["verdict"], found["findings"]) == ("equivalent", [])


def test_a_rate_is_proved_on_new_draws(dropping: Callable[[str, str], dict[str, Any]]) -> None:
    found = dropping("nn.Dropout2d(0.3)", "nn.Dropout2d(p=0.31)")
    (finding,) = found["findings"]
    cause = finding["cause"]
    assert (found["verdict"], cause["id"], cause["proved"]) == ("divergent", "dropout.p", True)
    assert (cause["reference"], cause["port"]) == (0.3, 0.31)


def test_what_the_draws_cannot_tell_is_never_proved(
    dropping: Callable[[str, str], dict[str, Any]],
) -> None:
    """0.3 and 0.302 differ by less than 360,000 draws show: right or wrong, it is not named."""
    found = dropping("nn.Dropout2d(0.3)", "nn.Dropout2d(p=0.302)")
    assert (found["verdict"], found["findings"]) == ("equivalent", [])


def test_a_port_that_draws_where_the_reference_does_not(
    dropping: Callable[..., dict[str, Any]],
) -> None:
    """MindSpore's RReLU draws its slopes in inference too, torch's takes their mean."""
    found = dropping("nn.RReLU()", "nn.RReLU()", "eval")
    assert found["verdict"] == "divergent"
    assert [f["cause"]["id"] for f in found["findings"]] == ["random.active"]


DRAWING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        v = self.fc(x)
        v = v + 0.1 * torch.poisson(torch.sigmoid(v) * 3)
        v = v + 0.1 * torch.empty_like(v).normal_(0.5, 0.2)
        v = v + 0.1 * torch.empty_like(v).exponential_(2.0)
        v = v + 0.1 * torch.empty_like(v).cauchy_(0.3, 2.0)
        v = v + 0.1 * torch.empty_like(v).geometric_(0.3)
        v = v + 0.1 * torch.empty_like(v).log_normal_(0.2, 0.5)
        v = v + 0.1 * torch.zeros(v.shape).random_(1, 5)
        v = v + 0.1 * torch.empty_like(v).uniform_(-0.3, 0.7)
        return v.repeat(2, 1)

def build():
    return Net()

def loss(output, target):
    return nn.functional.mse_loss(output, target)

def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
"""
SIDE = """framework = "{0}"
model = "{1}:build"
loss = "{1}:loss"
optimizer = "{1}:optimizer"
"""


def test_every_draw_is_the_same_on_both_sides(tmp_path: Path, verify: Verify) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    net, case = tmp_path / "net.py", tmp_path / "case.toml"
    net.write_text(DRAWING)
    assert not convert_path(net, tmp_path / "port").findings
    sides = "[reference]\n" + SIDE.format("torch", "net.py")
    sides += "[port]\n" + SIDE.format("mindspore", "port/net.py")
    shapes = "[[inputs]]\nshape = [5, 4]\n[[targets]]\nshape = [10, 6]\n"
    case.write_text(f'{sides}{shapes}[verify]\nsteps = 1\ncompiled = "off"\n')
    answer = verify(case)
    assert (answer.status, answer.error) == (0, ""), answer


#: A stochastic depth on whole samples, and what ports make of it.
BY_ELEMENT = """
class DropPath(nn.Cell):
    def __init__(self, rate):
        super().__init__()
        self.dropout = nn.Dropout(p=rate)
    def construct(self, x):
        return self.dropout(x)
"""
BY_HAND = """
class DropPath(nn.Cell):
    def __init__(self, rate):
        super().__init__()
        self.keep = 1 - rate
    def construct(self, x):
        if not self.training:
            return x
        return x * ops.floor(self.keep + ops.rand({shape})) / self.keep
"""
MORE_NUMBERS = """
def first(x):
    return x[:, :1, :1, :1]
""" + BY_HAND.format(shape="*x.shape").replace("ops.rand(*x.shape)", "first(ops.rand(*x.shape))")


@pytest.mark.parametrize(
    ("port", "mask"),
    [
        pytest.param(BY_HAND.format(shape="x.shape[0], 1, 1, 1"), None, id="by sample"),
        pytest.param(BY_HAND.format(shape="1, 1, 1, 1"), "1 × 1 × 1 × 1", id="by batch"),
        pytest.param(BY_HAND.format(shape="*x.shape"), "6 × 3 × 5 × 5", id="by element"),
        pytest.param(BY_HAND.format(shape="*x.shape[:2], 1, 1"), "6 × 3 × 1 × 1", id="by channel"),
        pytest.param(BY_ELEMENT, "6 × 3 × 5 × 5", id="a dropout of elements"),
        pytest.param(MORE_NUMBERS, None, id="by sample, of more numbers than it uses"),
    ],
)
def test_along_which_axes_a_mask_is_drawn(
    dropping: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    port: str,
    mask: str | None,
) -> None:
    monkeypatch.setitem(globals(), "MINDSPORE_DROP", port)
    found = dropping("DropPath(0.2)", "DropPath(0.2)")
    causes = [(f["cause"]["id"], f["cause"]["port"]) for f in found["findings"]]
    assert found["verdict"] == ("divergent" if mask else "equivalent")
    assert causes == ([("random.mask", mask)] if mask else [])


#: Noise after the layers, and a mask of whole samples beside it.
NOISY = """
class DropPath(nn.{base}):
    def {method}(self, x):
        if self.training:
            {first}
            {second}
        return x
"""
TORCH_NOISE = "x = x + 0.1 * torch.randn_like(x)"
TORCH_MASK = "x = x * (torch.rand(x.shape[0], 1, 1, 1) < 0.8) / 0.8"
MASK = "x = x * (ops.rand({}) < 0.8).astype(x.dtype) / 0.8"


@pytest.mark.parametrize(
    ("noise", "mask", "cause", "drawn"),
    [
        pytest.param("randn(1, *x.shape[1:])", None, "random.noise", "1 × 3 × 5 × 5", id="batch"),
        pytest.param("rand(1, *x.shape[1:])", None, "random.noise", "1 × 3 × 5 × 5", id="uniform"),
        pytest.param("randn(*x.shape[:2], 1, 1)", None, "random.noise", "6 × 3 × 1 × 1", id="rows"),
        pytest.param("randn_like(x)", None, None, None, id="right"),
        pytest.param("randn(2, *x.shape)[0]", None, None, None, id="more than it uses"),
        pytest.param("randn_like(x)", "x.shape", "random.mask", "6 × 3 × 5 × 5", id="mask"),
        pytest.param("randn_like(x)", "x.shape[0], 1, 1, 1", None, None, id="right mask"),
    ],
)
def test_along_which_axes_noise_is_drawn_and_masks_beside_it(
    dropping: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    noise: str,
    mask: str | None,
    cause: str | None,
    drawn: str | None,
) -> None:
    second, other = ("pass", "pass") if mask is None else (TORCH_MASK, MASK.format(mask))
    torch_words = {"base": "Module", "method": "forward", "first": TORCH_NOISE, "second": second}
    words = {"base": "Cell", "method": "construct", "second": other}
    words["first"] = f"x = x + 0.1 * ops.{noise}"
    monkeypatch.setitem(globals(), "TORCH_DROP", NOISY.format(**torch_words))
    monkeypatch.setitem(globals(), "MINDSPORE_DROP", NOISY.format(**words))
    found = dropping("DropPath()", "DropPath()")
    causes = [(f["cause"]["id"], f["cause"]["port"]) for f in found["findings"]]
    assert causes == ([(cause, drawn)] if cause else [])
    assert found["verdict"] == ("divergent" if cause else "equivalent")
    assert all("/" not in f["fix"]["where"] for f in found["findings"])


def test_a_dropout_in_place_of_a_stochastic_depth_is_told(
    dropping: Callable[..., dict[str, Any]],
) -> None:
    found = dropping("DropPath(0.2)", "nn.Dropout(p=0.2)")
    (finding,) = found["findings"]
    assert (found["verdict"], finding["cause"]["id"]) == ("divergent", "random.mask")
    assert finding["cause"]["reference"] == "6 × 1 × 1 × 1"
