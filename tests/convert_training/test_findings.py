"""What a port cannot do faithfully is told at its line; the rest of training code converts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import port_of
from tests.convert_training.running import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("loss.backward(create_graph=True)", "second-derivative"),
        ("torch.autograd.grad(loss, x, create_graph=True)", "second-derivative"),
        ("torch.optim.swap_in_optimizer_params_and_state(model, main, loss)", "not-converted"),
        ("torch.multiprocessing.spawn(main, nprocs=2)", "not-converted"),
    ],
)
def test_line_is_told(line: str, code: str, tmp_path: Path) -> None:
    converted = convert(f"{HEAD}def step(model, loss, x, main):\n    {line}\n", tmp_path)
    (finding,) = [f for f in converted.report.findings if f.code == code]
    assert finding.line == 6
    assert finding.advice
    assert "# isograd: " in converted.text.splitlines()[-1]


def test_lightning_is_told_at_its_import(tmp_path: Path) -> None:
    text = "import pytorch_lightning as pl\n\n\nclass M(pl.LightningModule):\n    pass\n"
    converted = convert(text, tmp_path)
    assert [f.code for f in converted.report.findings] == ["third-party"]


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("loss.backward()", "compat.backward(loss)"),
        ("(loss / 4).backward()", "compat.backward(loss / 4)"),
        ("scaler.scale(loss).backward()", "compat.backward(scaler.scale(loss))"),
        ("loss.backward(retain_graph=True)", "compat.backward(loss, retain_graph=True)"),
        ("loss.backward(torch.ones_like(loss))", "compat.backward(loss, ops.ones_like(loss))"),
        (
            "count = 0; count += loss; count.backward()",
            "count = 0; count += loss; compat.backward(count)",
        ),
        ("x = x.type(value)", "x = compat.typed(x, value)"),
        ("x = x.type(torch.half)", "x = x.type(ms.float16)"),
        ("self.backward(loss)", "self.backward(loss)"),
        ("model.zero_grad()", "compat.zero_grad(model)"),
        ("batch = batch.to(device)", "batch = compat.moved(batch, device)"),
        ("p.data = value", "compat.set_data(p, value)"),
        ("self.data = value", "self.data = value"),
        ("p.data -= value", "compat.write_data(p, p.data - value)"),
        ("p -= rate * p.grad", "p = compat.updated(p, p - (rate * getattr(p, 'grad', None)))"),
        ("x.requires_grad = True", "x = compat.leaf(x)"),
        ("with torch.no_grad(): pass", "with compat.no_grad(): pass"),
        ("count += 1", "count += 1"),
    ],
)
def test_statement_is_converted(line: str, port: str, tmp_path: Path) -> None:
    names = "self, model, loss, x, p, value, rate, scaler, batch, device, count"
    converted = convert(f"{HEAD}def step({names}):\n    {line}\n", tmp_path)
    assert converted.text.splitlines()[-1].strip() == port
    assert converted.left == []


def test_recording_begins_without_an_optimizer(tmp_path: Path) -> None:
    library = "def train(o):\n    torch.ones(1).backward()\n\n\n"
    library += "def made():\n    return torch.optim.SGD([], 1)\n"
    with_one = convert(f"{HEAD}{library}", tmp_path)
    assert "record_gradients" not in with_one.text
    (tmp_path / "script").mkdir()
    script = convert(f"{HEAD}{library}train(made())\n", tmp_path / "script")
    assert "\ncompat.record_gradients()\n" in script.text, "it may ask before there is an optimizer"
    (tmp_path / "before").mkdir()
    before = "def run(make):\n    net = make()\n    loss = net(1)\n"
    before += "    made = torch.optim.SGD(net.parameters(), 1)\n    loss.backward()\n"
    called = convert(f"{HEAD}{before}", tmp_path / "before")
    assert "\ncompat.record_gradients()\n" in called.text, "a network is called before there is one"
    (tmp_path / "other").mkdir()
    without = convert(f"{HEAD}torch.ones(1).backward()\n", tmp_path / "other")
    assert "\ncompat.record_gradients()\n" in without.text


def test_a_call_whose_arguments_are_not_known_is_said_not_to_be_converted(tmp_path: Path) -> None:
    """It was said to have too many arguments."""
    done = convert("import torch\n\ng = torch.cuda.memory_stats(0)\n", tmp_path)
    assert done.left == ["a call of torch.cuda.memory_stats with arguments is not converted"]


def test_parameters_that_are_told_whether_to_learn_are_parameters_already() -> None:
    _, findings = port_of("""
        from torch import nn

        layer = nn.Linear(2, 2)
        for p in layer.parameters():
            p.requires_grad_(False)
        for name, p in layer.named_parameters():
            p.requires_grad_(name == "bias")
        layer.weight.requires_grad_()
        """)
    assert not findings
    _, findings = port_of("""
        import torch

        def f(x: torch.Tensor):
            return (x * 2).requires_grad_().sum()
        """)
    assert [one.code for one in findings] == ["look"]
