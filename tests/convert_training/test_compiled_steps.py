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

PROGRAMS = Path(__file__).parent / "compiled"
#: Runs a port where torch cannot be imported, and prints how many graphs it compiled.
COUNTED = """
import runpy, sys
sys.modules["torch"] = None
sys.path.insert(0, ".")
runpy.run_path("script.py", run_name="__main__")
from mindspore.common import api
print("compiled", len(api.ms_compile_cache))
"""


def program(name: str) -> str:
    """A training script of the folder."""
    return (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


def converted(text: str, folder: Path, *, eager: bool = False) -> tuple[str, list[str]]:
    """A script's port, and why its training stays eager."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    report = convert_path(folder / "script.py", folder / "port", Options(eager=eager, force=True))
    assert [f for f in report.findings if f.level is Level.FINISH] == []
    found = [f"{f.line}: {f.message}" for f in report.findings if f.code == "eager-training"]
    path = folder / "port"
    text = (path / "script.py" if path.is_dir() else path).read_text(encoding="utf-8")
    return text, found


@pytest.mark.parametrize(
    ("name", "steps", "graphs"),
    [
        # Five functions, each once in all epochs; one more for the loss that is made infinite.
        pytest.param("several_loops", 5, 6, id="clipping, accumulation, a scaler, a state"),
        # Each optimizer's step; the last has one that adds gradients and one that takes them.
        pytest.param("complex_weights", 3, 6, id="complex weights"),
        pytest.param("in_turn", 2, 2, id="networks that learn in turn"),
        # A loss and two in one step; three losses for one step, one that goes back through theirs.
        pytest.param("shared", 6, 6, id="losses that add up, and one that goes back further"),
        pytest.param("sometimes", 5, 5, id="steps of some rounds, a replay memory"),
        # Two networks.
        pytest.param("reported", 1, 2, id="methods that report something beside their value"),
        pytest.param("in_functions", 2, 2, id="a method and a function of one batch"),
        pytest.param("two_in_one", 1, 1, id="two networks with equal names in one optimizer"),
        # Micro-steps and branches are called twice, each time with objects of its own.
        pytest.param("other_loops", 5, 8, id="while, keywords, micro-steps, numbers, branches"),
        pytest.param("rules", 1, 9, id="each rule is compiled once"),
        # train() and eval().
        pytest.param("attributes", 1, 2, id="a loss that is an attribute, callbacks"),
        # Three functions, each with three networks.
        pytest.param("descent", 3, 9, id="gradient descent by hand"),
        pytest.param("outputs", 1, 1, id="a dictionary made by keywords"),
        # Micro-steps have one function for the gradients and one for the step.
        pytest.param("clipping", 6, 6, id="bounds by keyword, computed, of each round"),
        pytest.param("together", 3, 3, id="several optimizers, penalties on the parameters"),
        pytest.param("phases", 3, 3, id="a step in one phase, the forward part in others"),
        # The share of the mixed batches is a constant until it changes, the bound of Huber's loss
        # stays one.
        pytest.param("inputs", 3, 5, id="batches of dictionaries, a number of each round"),
        # A weight of each round is a constant until it changes.
        pytest.param("of_arrays", 7, 8, id="arrays and lists that become tensors in the loop"),
        pytest.param("own_gradients", 1, 1, id="functions with gradients of their own"),
        # Micro-steps have two functions.
        pytest.param("versions", 4, 4, id="a loss that is read before it has its last value"),
        pytest.param("states", 1, 1, id="states in a list"),
        # Two networks.
        pytest.param("containers", 1, 2, id="parameters in lists and dictionaries"),
        # Four trainings, each with graphs for train() and eval().
        pytest.param("modes", 1, 8, id="modes that change, a scaler or none"),
    ],
)
def test_compiled_steps_follow_the_original_and_compile_once(
    name: str, steps: int, graphs: int, tmp_path: Path
) -> None:
    text, found = converted(program(name), tmp_path)
    assert found == []
    assert text.count("@ms.jit") == steps
    assert "backward" not in text
    semantics = (tmp_path / "port" / "torch_semantics.py").read_text(encoding="utf-8")
    assert re.findall(r"_pynative_executor|common\.api", semantics) == []
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if "WARNING" not in line and line]
    ours = np.array([float(line) for line in lines[:-1]])
    np.testing.assert_allclose(ours, numbers(tmp_path, is_port=False), rtol=2e-5, atol=2e-5)
    assert lines[-1] == f"compiled {graphs}"


def test_eager_leaves_loops_as_they_are(tmp_path: Path) -> None:
    text, found = converted(program("several_loops"), tmp_path, eager=True)
    assert found == []
    assert "jit" not in text
    assert text.count("compat.backward(") == 4


LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Seen:
    def of(self, out):
        return out.sum() + self.loss

    def note(self, loss):
        self.loss = loss


def scaled(out, settings):
    return out.sum() * settings.factor.item()


scaler, seen = None, Seen()
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
        pytest.param(
            "    optimizer.step()",
            "    nn.utils.clip_grad_norm_(model.parameters(), 1, 1)\n    optimizer.step()",
            "other arguments",
            id="another norm is clipped",
        ),
        pytest.param(
            "    optimizer.step()",
            "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n"
            "    other.step()\n    other.zero_grad()",
            "one of several optimizers are clipped",
            id="two optimizers, one's gradients are clipped",
        ),
        pytest.param(
            "    optimizer.zero_grad()\n    loss",
            "    if len(loader) > 2:\n        other.zero_grad()\n    optimizer.zero_grad()\n"
            "    other.step\n    loss",
            "",
            id="another optimizer is zeroed and never steps",
        ),
        pytest.param(
            "    optimizer.zero_grad()",
            "    optimizer.zero_grad()\n    other.zero_grad()\n    other.step()",
            "before backward",
            id="one optimizer steps before",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    loss = scaled(model(x), seen)",
            "reads its factor",
            id="an object with settings",
        ),
        pytest.param("ward()", "ward(torch.ones(()))", "given arguments", id="a gradient"),
        pytest.param("SGD", "Rprop", "no compiled rule", id="another optimizer"),
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
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    y.mul_(2.0)\n    loss = y.sum()",
            "more than assignments",
            id="an output is changed in place",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    y.data[:, 0] = 4.0\n    loss = y.sum()",
            "writes to an attribute or an element",
            id="an element of an output's data is written",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    with torch.no_grad():\n        y.clamp_(max=0.5)\n"
            "    loss = y.sum()",
            "more than assignments",
            id="an output is changed where nothing is recorded",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    loader[0][:] = y.detach()\n    loss = (y * loader[0]).sum()",
            "writes to an attribute or an element",
            id="a bank that the loss reads keeps an output",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    outs = []\n    print(outs)\n    outs.append(model(x))\n    loss = outs[0].sum()",
            "more than assignments",
            id="a list that is read before it gets an output",
        ),
        pytest.param(
            "    loss = model(x).sum()\n    loss.backward()",
            "    y = model(x)\n    w = len(loader)\n    (y * w).sum().backward()",
            "behind the forward part",
            id="what the loss alone reads is bound behind the network's call",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    z = x.clone()\n    z[0] = 2.0\n    z.mul_(2)\n    loss = model(z).sum()",
            "",
            id="a batch is changed before the network's call",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    seen.kept = [y.detach()]\n    seen.kept.append(x)\n"
            "    loss = y.sum()",
            "",
            id="an output is kept, and the loss does not read it",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x * seen.rate)\n    seen.rate = seen.rate * 2\n"
            "    loss = y.sum() * seen.rate",
            "change what it reads or binds",
            id="an attribute changes between two places that read it",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    y = model(x)\n    seen.kept = y.detach()\n    y = y + model(x * 2)\n"
            "    loss = y.sum()",
            "",
            id="an output is read before it has its last value",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    loss = model(x).sum()\n    seen.kept = loss\n    loss /= 2",
            "bound again behind it",
            id="a loss that is kept changes in place",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    loss = model(x).sum()\n    print(loss.item())\n    if len(loader):\n"
            "        loss = loss / 2",
            "bound again behind it",
            id="a loss that was read changes in one branch",
        ),
        pytest.param("    optimizer.zero_grad()\n", "", "no optimizer", id="never zeroed"),
        pytest.param("    optimizer.zero", "    model.zero", "", id="the network zeroes"),
        pytest.param("x).sum()", "x).sum() + loader[0].sum().item()", r"item\(\)", id="item"),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    if len:\n        loss.backward()\n        optimizer.step()",
            "",
            id="a condition that stays the same",
        ),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    if len:\n        loss.backward()\n        optimizer.step()\n        print(1)",
            "holds more than the step",
            id="a condition that stays the same, around more than the step",
        ),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    if len:\n        loss.backward()\n    optimizer.step()",
            "not under the condition",
            id="a condition around backward() alone",
        ),
        pytest.param(
            "    loss = model(x).sum()\n",
            "    with torch.set_grad_enabled(False):\n        kept = model(x)\n"
            "    loss = model(x).sum()\n",
            "set_grad_enabled",
            id="gradients are switched off elsewhere",
        ),
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
            "shift = [nn.Parameter(torch.ones(1))]\nfor x in loader:",
            "outside of networks",
            id="a parameter outside of networks",
        ),
        pytest.param(
            "    optimizer.step()",
            "    optimizer.step()\n    model.eval()",
            "",
            id="the mode changes",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    out = model(x)\n    x = x * 3\n    loss = out.sum()",
            "change what it reads",
            id="an input changes within the forward part",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    out = model(x)\n    y = x * 3\n    loss = (out * y).sum()",
            "",
            id="another input is made within the forward part",
        ),
        pytest.param(
            "for x in loader:\n    optimizer.zero_grad()\n    loss = model(x)",
            "for k, x in enumerate(loader):\n    optimizer.zero_grad()\n"
            "    loss = model(loader[k + 1] if k < 2 else x)",
            "compiled anew",
            id="an element that is there under a condition",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    if x.shape[0]:\n        out = model(x)\n        loss = out.sum()",
            "no value in the first round",
            id="a loss in one branch",
        ),
        pytest.param(
            "for x in loader:",
            "def look(net):\n    net.eval()\n\nfor x in loader:\n    look(model)",
            "",
            id="a function leaves the network in eval",
        ),
        pytest.param(
            "for x in loader:",
            "def look(net):\n    net.eval()\n    net.train()\n\nfor x in loader:\n    look(model)",
            "",
            id="a function sets train again",
        ),
        pytest.param(
            "for x in loader:",
            "def look(net):\n    net.eval()\n    if len(loader) > 3:\n        return\n"
            "    net.train()\n\nfor x in loader:\n    look(model)",
            "",
            id="a function sets train again on one way out",
        ),
        pytest.param(
            "model = nn.Linear(4, 1)",
            "class Net(nn.Linear):\n    def step(self, x):\n        return self(x)\n\n"
            "model = Net(4, 1)",
            "",
            id="a method that the loop does not call",
        ),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    if scaler is None:\n        loss.backward()\n        optimizer.step()\n"
            "    else:\n        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n"
            "        scaler.update()",
            "",
            id="a scaler or none",
        ),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    if scaler is None:\n        loss.backward()\n        optimizer.step()\n"
            "    else:\n        scaler.scale(2 * loss).backward()\n"
            "        scaler.step(optimizer)\n        scaler.update()",
            "no statement of a loop",
            id="a scaler or another loss",
        ),
        pytest.param(
            "    loss = model(x).sum()\n    loss.backward()",
            "    seen.loss = seen.of(model(x))\n    seen.loss.backward()",
            "may see an attribute",
            id="a method sees the attribute that the forward part writes",
        ),
        pytest.param(
            "    optimizer.step()",
            "    for p in model.parameters():\n        p.data.sub_(0.1 * p.grad)",
            "zeroed elsewhere",
            id="an optimizer zeroes, but never steps",
        ),
        pytest.param(
            "    optimizer.step()\n",
            "    optimizer.step()\nfor x in loader:\n    loss = model(x).sum()\n"
            "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
            "gradients of another loop",
            id="the first loop leaves gradients to the second",
        ),
        pytest.param(
            "    loss.backward()\n    optimizer.step()",
            "    loss.backward()\n    seen.most = 1 / float(x.sum())\n"
            "    nn.utils.clip_grad_norm_(model.parameters(), seen.most)\n    optimizer.step()",
            "seen.most changes between",
            id="the bound changes behind the forward part",
        ),
        pytest.param(
            "    optimizer.zero_grad()\n    loss = model(x).sum()\n    loss.backward()\n"
            "    optimizer.step()",
            "    model.zero_grad()\n    loss = model(x).sum()\n    loss.backward()\n"
            "    rate = 0.1 / float(x.sum())\n    for p in model.parameters():\n"
            "        p.data.sub_(rate * p.grad)",
            "rate changes between",
            id="the rate changes behind the forward part",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    loss = 0\n    for part in x:\n        print(part)\n"
            "        loss = loss + model(x).sum()",
            "more than assignments",
            id="prints between",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "    loss = model(x).sum()",
            "optimizer is made anew in each round",
            id="an optimizer of each round",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    model = nn.Linear(3, 2)\n    loss = model(x).sum()",
            "model is made anew in each round",
            id="a network of each round",
        ),
        pytest.param(
            "    loss = model(x).sum()",
            "    bent = nn.PReLU()\n    loss = bent(model(x)).sum()",
            "bent is made anew in each round",
            id="a layer of each round that learns",
        ),
    ],
)
def test_why_a_loop_stays_eager(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text, found = converted(LOOP.replace(old, new), tmp_path)
    assert ("ms.jit" in text) is not bool(reason)
    assert len(found) == bool(reason)
    assert re.search(reason, "".join(found)), found


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
