"""Stage compiled on real ports: what only MindSpore's static graph makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.verify.conftest import Answer, CaseMaker

from isograd.frameworks.capabilities import CompilesModules
from isograd.model import Severity, Stage
from isograd.progress import SilentProgress
from isograd.verify.case import read_case
from isograd.verify.compiled.stage import CompiledResult, begin_compiled, run_compiled
from isograd.verify.prepare import prepare
from isograd.verify.session import Session

pytest.importorskip("mindspore")
pytest.importorskip("torch")

REFERENCE = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.fc(x)) + x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.block = Block()

    def forward(self, x):
        return self.block(self.stem(x))

def build():
    return Net()

def loss(output, target):
    return ((output - target) ** 2).mean()

def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
"""
PORT = """
from mindspore import jit, nn, ops

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)

    {decorator}
    def construct(self, x):
        {first}
        {second}

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.Dense(4, 4)
        self.block = Block()

    def construct(self, x):
        return self.block(self.stem(x))

def build():
    return Net()

def loss(output, target):
    return ((output - target) ** 2).mean()

def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1)
"""
CASE = """
[reference]
model = "net_torch.py:build"
loss = "net_torch.py:loss"
optimizer = "net_torch.py:optimizer"
[port]
model = "net_mindspore.py:build"
loss = "net_mindspore.py:loss"
optimizer = "net_mindspore.py:optimizer"
[[inputs]]
shape = [3, 4]
[[targets]]
shape = [3, 4]
"""


def stage_alone(
    folder: Path, reference: str, port: str, case: str = CASE
) -> tuple[CompiledResult, Session]:
    """What the stage finds of two sources, and the session that it was found in, closed."""
    (folder / "net_torch.py").write_text(reference)
    (folder / "net_mindspore.py").write_text(port)
    (folder / "case.toml").write_text(case)
    with Session(read_case(folder / "case.toml"), 0, SilentProgress()) as session:
        session.build()
        prepare(session)
        return run_compiled(session, begin_compiled(session)), session


def block(first: str, second: str, decorator: str = "") -> str:
    """A port with these two lines in its block."""
    return PORT.format(first=first, second=second, decorator=decorator or "# as it is")


def compiled(folder: Path, first: str, second: str, decorator: str = "") -> CompiledResult:
    """The stage alone, on a port with these two lines in its block."""
    found, _ = stage_alone(folder, REFERENCE, block(first, second, decorator))
    return found


def test_a_port_that_compiles_has_no_finding(tmp_path: Path) -> None:
    found = compiled(tmp_path, "y = ops.tanh(self.fc(x))", "return y + x")
    assert (found.findings, found.refused) == ([], False)
    assert found.checked > 20
    assert {p.name for p in tmp_path.iterdir() if p.is_file()} == {
        "case.toml",
        "net_torch.py",
        "net_mindspore.py",
    }


def test_a_schedule_steps_in_the_compiled_steps_as_in_the_eager_ones(tmp_path: Path) -> None:
    """A warm-up doubles the rate between the steps that are compiled once."""
    warm = "LambdaLR(made, lambda step: 0.25 * 2.0**step)"
    reference = REFERENCE.replace("return torch.optim", "made = torch.optim")
    reference += f"    return made, torch.optim.lr_scheduler.{warm}\n"
    port = block("y = ops.tanh(self.fc(x))", "return y + x")
    port = port.replace(
        "return nn.SGD(model.trainable_params(), learning_rate=0.1)",
        "made = optim.SGD(model.trainable_params(), lr=0.1)",
    )
    port = "from mindspore.experimental import optim\n" + port
    found, _ = stage_alone(
        tmp_path, reference, f"{port}    return made, optim.lr_scheduler.{warm}\n"
    )
    assert (found.findings, found.refused) == ([], False)


@pytest.mark.parametrize(
    ("first", "second", "code", "cause"),
    [
        pytest.param(
            "ys = [ops.tanh(self.fc(x))]; ys.extend([x])",
            "return ys[0] + ys[1]",
            "compiled.gradient-lost",
            "list.extend",
            id="a list is extended: no gradient",
        ),
        pytest.param(
            "y = ops.tanh(self.fc(x)); z = y; z += x",
            "return y",
            "compiled.differs",
            "augmented.alias",
            id="another name of a tensor: another output",
        ),
    ],
)
def test_what_compiles_to_something_else_is_effective(
    first: str, second: str, code: str, cause: str, tmp_path: Path
) -> None:
    found = compiled(tmp_path, first, second)
    assert [(f.code, f.module, f.severity) for f in found.findings] == [
        (code, "block", Severity.EFFECTIVE)
    ]
    named = found.findings[0].cause
    assert named is not None
    assert (named.id, named.proved) == (cause, True)
    assert found.findings[0].fix is not None
    assert found.findings[0].fix.where == "net_mindspore.py:11"


@pytest.mark.parametrize(
    ("decorator", "severity"),
    [
        pytest.param("", Severity.EQUIVALENT, id="nobody asks for jit"),
        pytest.param("@jit", Severity.EFFECTIVE, id="the port asks for jit"),
    ],
)
def test_what_does_not_compile_matters_where_the_port_asks_for_it(
    decorator: str, severity: Severity, tmp_path: Path
) -> None:
    found = compiled(
        tmp_path,
        "ys = [y for y in [ops.tanh(self.fc(x))] for _ in range(1)]",
        "return ys[0] + x",
        decorator,
    )
    assert found.refused
    finding = found.findings[0]
    assert (finding.code, finding.module, finding.severity) == (
        "compiled.refused",
        "block",
        severity,
    )
    assert finding.stage is Stage.COMPILED
    assert "supports 1 'comprehension'" in finding.message
    assert finding.cause is not None
    assert (finding.cause.id, finding.cause.proved) == ("comprehension.two_loops", True)


def test_a_port_that_both_modes_refuse_is_equivalent_and_runs_eagerly(
    make_case: CaseMaker, verify: Callable[..., Answer]
) -> None:
    """MindSpore's compiler knows the first argument by its name `self` alone."""
    make_case.frameworks = ("torch", "mindspore")
    make_case.extra = '[verify]\nsteps = 1\nmode = "eval"\n'
    layers = "nn.SequentialCell(nn.Dense(4, 5), nn.ReLU(), nn.Dense(5, 3))"
    network = "class Net(nn.Cell):\n    def construct(this, x):\n        return this.net(x)\n\n"
    make_case.spoil = (
        ("def build():", f"{network}def build():\n    net = Net()"),
        (f"return {layers}", f"net.net = {layers}\n    return net"),
    )
    answer = verify(make_case.write())
    assert (answer.status, "eager" in answer.out) == (0, True), answer


def test_a_gradient_that_is_another_one_from_the_second_call_is_found_where_it_is(
    tmp_path: Path,
) -> None:
    """The gradient of a constant's padding writes into what the next call pads with."""
    found = compiled(
        tmp_path,
        "y = ops.tanh(self.fc(x)) + x",
        "return ops.narrow(ops.pad(y, (1, 2)), 1, 1, 4)",
    )
    assert {(f.code, f.module) for f in found.findings} == {("compiled.differs", "block")}
    assert {f.cause and f.cause.id for f in found.findings} == {"pad.constant"}


def test_a_fault_of_one_mode_alone_is_found_in_it(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        "y = ops.tanh(self.fc(x))",
        "z = x * 1.0 if self.training else y; z += x; return y + z",
    )
    assert [(f.code, f.module, f.mode) for f in found.findings] == [
        ("compiled.differs", "block", "eval")
    ]


@pytest.mark.parametrize("moment", ["before its process is there", "while it is started", "later"])
def test_closing_ends_what_was_begun_ahead(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net_torch.py").write_text(REFERENCE)
    lines = PORT.format(first="y = ops.tanh(self.fc(x))", second="return y + x", decorator="#")
    (tmp_path / "net_mindspore.py").write_text(lines)
    (tmp_path / "case.toml").write_text(CASE)
    with Session(read_case(tmp_path / "case.toml"), 0, SilentProgress()) as session:
        session.build()
        prepare(session)
        start, begun = session.start, Event()

        def started(*arguments: Any) -> Any:
            if moment == "before its process is there":
                begun.set()
                time.sleep(0.5)
            worker = start(*arguments)
            begun.set()
            return worker

        monkeypatch.setattr(session, "start", started)
        port = begin_compiled(session)
        if moment == "later":
            port.ask(CompilesModules.once, "jit", "eval", {}, [], False, True)
        begun.wait(60)
        port.close()
        assert (
            port.ask(CompilesModules.once, "jit", "eval", {}, [], False, True)["refused"]
            == "the verification ended"
        )


def test_what_has_no_partner_starts_each_step_where_the_eager_one_did(tmp_path: Path) -> None:
    """Several ways step the same network: its own weight must not move once for each."""
    alone = "self.own = Parameter(Tensor([0.5, 2.0], ms.float32))"
    port = block("y = ops.tanh(self.fc(x))", "return (y + x) * self.own.mean()")
    port = port.replace("self.fc = nn.Dense(4, 4)", f"self.fc = nn.Dense(4, 4); {alone}")
    port = port.replace("learning_rate=0.1", "learning_rate=1.0")
    port = "import mindspore as ms\nfrom mindspore import Parameter, Tensor\n" + port
    found, session = stage_alone(tmp_path, REFERENCE, port)
    assert session.pairing.unpaired_port == ("block.own",)
    assert found.findings == []


def test_a_gradient_that_is_zero_but_for_rounding_is_no_deviation(tmp_path: Path) -> None:
    """A softmax does not see its rows' constant; what is refused has its modules judged alone."""
    head = REFERENCE.partition("class Block")[0], PORT.partition("class Block")[0]
    tail = REFERENCE.partition("def build")[2], PORT.partition("def build")[2]
    body = """
class Attend(nn.{base}):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.{layer}(24, 24) for _ in range(3))

    def {method}(self, x):
        {text}

class Net(nn.{base}):
    def __init__(self):
        super().__init__()
        self.stem = nn.{layer}(4, 24)
        self.attend = Attend()
        self.last = nn.{layer}(24, 4)

    def {method}(self, x):
        {strict}
        return self.last(self.attend(self.stem(x)))

def build"""
    reference = body.format(
        base="Module",
        layer="Linear",
        method="forward",
        strict="pass",
        text="""
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q * 0.3 @ k.mT, -1) @ v""".strip(),
    )
    port = body.format(
        base="Cell",
        layer="Dense",
        method="construct",
        strict="for _ in zip([x], [x], strict=True): pass",
        text="""
        weight = ops.cat((self.query.weight, self.key.weight, self.value.weight))
        bias = ops.cat((self.query.bias, self.key.bias, self.value.bias))
        q, k, v = ops.chunk(ops.matmul(x, weight.T) + bias, 3, axis=-1)
        return ops.matmul(ops.softmax(ops.matmul(q * 0.3, k.swapaxes(-1, -2)), -1), v)""".strip(),
    )
    sources = head[0] + reference + tail[0], head[1] + port + tail[1]
    found, _ = stage_alone(tmp_path, *sources, CASE.replace("[3, 4]", "[4, 7, 4]"))
    assert found.refused
    assert not any(finding.diverges for finding in found.findings), found.findings


def test_dropout_beside_a_mask_drawn_by_hand_is_scaled_in_compiled_runs_too(
    tmp_path: Path,
) -> None:
    """Stochastic depth: torch draws the mask by hand, the port drops ones by nn.Dropout."""
    reference = REFERENCE.replace(
        "return torch.tanh(self.fc(x)) + x",
        """mask = x.new_empty((x.shape[0], 1)).bernoulli_(0.8) if self.training else 0.8
        return torch.tanh(self.fc(x)) * mask / 0.8 + x""",
    )
    port = block(
        "mask = self.drop(ops.ones((x.shape[0], 1), x.dtype))",
        "return ops.tanh(self.fc(x)) * mask + x",
    ).replace(
        "self.fc = nn.Dense(4, 4)\n", "self.fc = nn.Dense(4, 4); self.drop = nn.Dropout(p=0.2)\n"
    )
    found, session = stage_alone(tmp_path, reference, port)
    assert session.scales_dropout
    assert (found.findings, found.refused) == ([], False)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param(
            "F.gumbel_softmax(y, tau=0.7, hard=True)",
            "ops.gumbel_softmax(y, tau=0.7, hard=True)",
            id="gumbel",
        ),
        pytest.param("y * torch.rand(3, 1)", "y * ops.rand(3, 1)", id="rand"),
        pytest.param("y[torch.randperm(3)]", "y[ops.randperm(3)]", id="randperm"),
        pytest.param(
            "y * torch.randint(2, 9, (3, 1))", "y * ops.randint(2, 9, (3, 1))", id="randint"
        ),
        pytest.param(
            "y * torch.multinomial(torch.softmax(y.detach(), -1), 1)",
            "y * ops.multinomial(ops.softmax(ops.stop_gradient(y), -1), 1, False)",
            id="multinomial",
        ),
        pytest.param(
            "y * torch.bernoulli(torch.sigmoid(y.detach()))",
            "y * ops.bernoulli(y, ops.sigmoid(ops.stop_gradient(y)))",
            id="bernoulli",
        ),
    ],
)
def test_draws_are_the_same_constants_in_compiled_runs(
    theirs: str, ours: str, tmp_path: Path
) -> None:
    reference = REFERENCE.replace(
        "import torch\n", "import torch\nimport torch.nn.functional as F\n", 1
    )
    reference = reference.replace(
        "return torch.tanh(self.fc(x)) + x", f"y = torch.tanh(self.fc(x)); return {theirs} + x"
    )
    port = block("y = ops.tanh(self.fc(x))", f"return {ours} + x")
    found, _ = stage_alone(tmp_path, reference, port)
    assert [(one.code, one.message) for one in found.findings if one.diverges] == []
    assert found.checked > 20, found.findings
