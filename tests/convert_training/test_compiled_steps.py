"""Training loops of the usual form become one compiled step; others stay eager and say why."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import numbers
from tests.warm_python import run_python

from isograd.convert.conversion import Options
from isograd.convert.model import Level
from isograd.convert.run import convert_path

#: Four loops of one program: clipping and a schedule; gradients of two batches; a scaler; a state.
PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(4, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 3)

    def forward(self, x, state=None):
        h = torch.tanh(self.norm(self.first(x)))
        if state is not None:
            h = h + 0.1 * state
        return self.last(h), h


def make(width):
    model = Net(width)
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


def batches():
    for k in range(6):
        x = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
        yield {"x": x, "y": (torch.arange(8) + k) % 3}


class Settings:
    clip, accumulate, smooth = 0.5, 2, 0.1


def clipped(model, optimizer, criterion, epoch):
    model.train()
    total = 0.0
    for batch in batches():
        optimizer.zero_grad()
        output, _ = model(batch["x"])
        loss = criterion(output, batch["y"])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.4)
        optimizer.step()
        total += loss.item()
    print(total)


def accumulated(model, optimizer, args):
    model.train()
    optimizer.zero_grad()
    for i, batch in enumerate(batches()):
        x, y = batch["x"], batch["y"]
        output, _ = model(x)
        loss = F.cross_entropy(output, y, label_smoothing=args.smooth)
        (loss / args.accumulate).backward()
        if (i + 1) % args.accumulate == 0:
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            optimizer.zero_grad()
            print(norm.item())
        print(loss.item())


def scaled(model, optimizer, scaler):
    model.train()
    for i, batch in enumerate(batches()):
        factor = float("inf") if i == 2 else 1.0
        x, y = batch["x"], batch["y"]
        optimizer.zero_grad()
        output, _ = model(x)
        loss = F.cross_entropy(output, y) * factor
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
        print(scaler.get_scale())
        if i != 2:
            print(loss.item())


def carried(model, optimizer):
    model.train()
    state = torch.zeros(8, 5)
    for batch in batches():
        state = state.detach()
        output, state = model(batch["x"], state)
        loss = F.cross_entropy(output, batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def main():
    model = make(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        clipped(model, optimizer, criterion, epoch)
        scheduler.step()
    model = make(6)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.01
    )
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(2):
        accumulated(model, optimizer, Settings)
        scheduler.step()
    model = make(7)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-3, amsgrad=True)
    scaled(model, optimizer, torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2))
    model = make(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(2):
        carried(model, optimizer)
    model.eval()
    with torch.no_grad():
        print(model(torch.ones(2, 4))[0].sum().item())


main()
"""
#: Runs a port where torch cannot be imported, and prints how many graphs it compiled.
COUNTED = """
import runpy, sys
sys.modules["torch"] = None
sys.path.insert(0, ".")
runpy.run_path("script.py", run_name="__main__")
from mindspore.common import api
print("compiled", len(api.ms_compile_cache))
"""


def converted(text: str, folder: Path, *, eager: bool = False) -> tuple[str, list[str]]:
    """A script's port, and why its training stays eager."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    report = convert_path(folder / "script.py", folder / "port", Options(eager=eager, force=True))
    assert [f for f in report.findings if f.level is Level.FINISH] == []
    found = [f"{f.line}: {f.message}" for f in report.findings if f.code == "eager-training"]
    path = folder / "port"
    text = (path / "script.py" if path.is_dir() else path).read_text(encoding="utf-8")
    return text, found


def test_compiled_steps_follow_the_original_and_compile_once(tmp_path: Path) -> None:
    text, found = converted(PROGRAM, tmp_path)
    assert found == []
    assert text.count("@ms.jit") == 5
    assert "backward" not in text
    semantics = (tmp_path / "port" / "torch_semantics.py").read_text(encoding="utf-8")
    assert re.findall(r"_pynative_executor|common\.api", semantics) == []
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if "WARNING" not in line and line]
    ours = np.array([float(line) for line in lines[:-1]])
    np.testing.assert_allclose(ours, numbers(tmp_path, is_port=False), rtol=2e-5, atol=2e-5)
    # Five functions, each once in all epochs; one more for the loss that is made infinite.
    assert lines[-1] == "compiled 6"


def test_eager_leaves_loops_as_they_are(tmp_path: Path) -> None:
    text, found = converted(PROGRAM, tmp_path, eager=True)
    assert found == []
    assert "jit" not in text
    assert text.count("compat.backward(") == 4


LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [torch.ones(2, 4)] * 3
for x in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param("", "", "", id="the usual form"),
        pytest.param("loss.backward()", "loss . backward ()", "", id="blanks around the name"),
        pytest.param("ward()", "ward(retain_graph=True)", "given arguments", id="retain_graph"),
        pytest.param("SGD", "Adagrad", "no compiled rule", id="another optimizer"),
        pytest.param(
            "    optimizer.step()",
            "    print(model.weight.grad)\n    optimizer.step()",
            "recorded gradients",
            id="gradients are read",
        ),
        pytest.param(
            "    optimizer.step()",
            "    print(model.weight.sum())\n    optimizer.step()",
            "what the step changes",
            id="weights are read before the step",
        ),
        pytest.param("    optimizer.zero_grad()\n", "", "no optimizer", id="never zeroed"),
        pytest.param("x).sum()", "x).sum() + loader[0].sum().item()", r"item\(\)", id="item"),
        pytest.param(
            "    loss.backward()",
            "    if loss > 0:\n        loss.backward()",
            "no statement of a loop",
            id="a condition on the loss",
        ),
        pytest.param(
            "for x in loader:",
            "extra = torch.ones(1, requires_grad=True)\nfor x in loader:",
            "no network's parameter",
            id="a tensor that learns",
        ),
        pytest.param(
            "for x in loader:",
            "shift = nn.Parameter(torch.ones(1))\nfor x in loader:",
            "outside of networks",
            id="a parameter outside of networks",
        ),
        pytest.param(
            "    optimizer.step()",
            "    optimizer.step()\n    model.eval()",
            r"train\(\) or eval\(\)",
            id="the mode changes",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    loss = 0\n    for part in x:\n        print(part)\n"
            "        loss = loss + model(x).sum()",
            "more than assignments",
            id="prints between",
        ),
    ],
)
def test_why_a_loop_stays_eager(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text, found = converted(LOOP.replace(old, new), tmp_path)
    assert ("ms.jit" in text) is not bool(reason)
    assert len(found) == bool(reason)
    assert re.search(reason, "".join(found)), found


#: A generator and a discriminator that learn in turn, each by its own loss.
IN_TURN = """
import torch
from torch import nn


def made(network):
    for number, p in enumerate(network.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return network


generator = made(
    nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
)
discriminator = made(nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1)))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.02, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()

for epoch in range(2):
    for k in range(4):
        real = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
        z = torch.cos(torch.arange(24).reshape(8, 3).float() * (k + 1 + 4 * epoch))
        valid, fake = torch.ones(8, 1), torch.zeros(8, 1)

        optimizer_G.zero_grad()
        made_up = generator(z)
        g_loss = criterion(discriminator(made_up), valid)
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_loss = criterion(discriminator(real), valid)
        fake_loss = criterion(discriminator(made_up.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        print(g_loss.item())
        print(d_loss.item())
generator.eval()
with torch.no_grad():
    print(generator(torch.ones(2, 3)).sum().item())
"""

#: Steps that are functions: a method, which calls another one, and a function of the file.
IN_FUNCTIONS = """
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(
            nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)
        )
        for number, p in enumerate(self.model.parameters()):
            values = torch.arange(p.numel()).reshape(p.shape).float()
            p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()

    def compute_loss(self, x, y):
        return self.criterion(self.model(x), y)

    def train_step(self, batch):
        self.model.train()
        x, y = batch
        self.optimizer.zero_grad()
        loss = self.compute_loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader):
        for batch in loader:
            print(self.train_step(batch))

    def evaluate(self, loader):
        self.model.eval()
        with torch.no_grad():
            print(sum(self.compute_loss(x, y).item() for x, y in loader))


def step(model, optimizer, x, y):
    output = model(x)
    loss = nn.functional.cross_entropy(output, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, output


loader = [
    (torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3)
    for k in range(3)
]
trainer = Trainer()
for _ in range(3):
    trainer.fit(loader)
    trainer.evaluate(loader)
other = nn.Linear(4, 3)
for p in other.parameters():
    p.data.fill_(0.1)
optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
for _ in range(3):
    for x, y in loader:
        loss, output = step(other, optimizer, x, y)
        print(loss.item())
        print(output.sum().item())
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(IN_TURN, id="networks that learn in turn"),
        pytest.param(IN_FUNCTIONS, id="a method and a function that are called for each batch"),
    ],
)
def test_each_step_compiles_once(program: str, tmp_path: Path) -> None:
    text, found = converted(program, tmp_path)
    assert found == []
    assert text.count("@ms.jit") == 2
    assert "backward" not in text
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if "WARNING" not in line and line]
    ours = np.array([float(line) for line in lines[:-1]])
    np.testing.assert_allclose(ours, numbers(tmp_path, is_port=False), rtol=2e-5, atol=2e-5)
    assert lines[-1] == "compiled 2"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            "discriminator(made_up.detach())",
            "discriminator(made_up)",
            "graph of made_up is shared",
            id="the second loss goes back through the first one's graph",
        ),
        pytest.param(
            "        optimizer_D.zero_grad()\n        real_loss",
            "        real_loss",
            "several places for one step",
            id="gradients of both losses meet in the discriminator",
        ),
        pytest.param(
            "        optimizer_G.zero_grad()\n",
            "        optimizer_G.zero_grad()\n        optimizer_D.zero_grad()\n",
            "gradients of another step",
            id="zeroed before the other loss adds its own",
        ),
        pytest.param(
            "        fake_loss = criterion",
            "        real_loss.backward()\n        fake_loss = criterion",
            "several places for one step",
            id="two losses for one step",
        ),
    ],
)
def test_why_turns_stay_eager(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text, found = converted(IN_TURN.replace(old, new), tmp_path)
    assert "ms.jit" not in text
    assert len(found) == 1
    assert re.search(reason, found[0])


@pytest.mark.parametrize(
    ("cell", "is_eager"),
    [
        pytest.param("# see loss.backward() in script.py", False, id="named in a comment"),
        pytest.param("print('loss.backward()')", False, id="named in a text"),
        pytest.param(LOOP, True, id="called"),
    ],
)
def test_a_notebook_that_takes_gradients_keeps_a_project_eager_and_says_so(
    cell: str, is_eager: bool, tmp_path: Path
) -> None:
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**code, "source": f"import torch\n{cell}"}]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "look.ipynb").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "project" / "script.py").write_text(LOOP, encoding="utf-8")
    report = convert_path(tmp_path / "project", tmp_path / "port")
    text = (tmp_path / "port" / "script.py").read_text(encoding="utf-8")
    found = [f.file for f in report.findings if f.code == "eager-training"]
    assert ("ms.jit" in text) is not is_eager
    assert found == ["look.ipynb"] * is_eager


def test_findings_stand_at_the_lines_of_the_original(tmp_path: Path) -> None:
    text = LOOP + "print(torch.cuda.memory_allocated())\nfrom torch import fx\nfx.Tracer()\n"
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    report = convert_path(tmp_path / "script.py", tmp_path / "port")
    lines = {f.line for f in report.findings if f.api.startswith("torch.fx")}
    last = textwrap.dedent(text).rstrip().count("\n") + 1
    assert lines <= {last - 1, last}
    assert lines
