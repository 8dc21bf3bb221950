"""Methods of what may be a tensor, an array of numpy's or an object of the program's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both, run_original, run_port

TOOLS = """
import numpy as np
import torch


class Graph:
    def __init__(self, x):
        self.x = x

    def clone(self):
        return Graph(self.x.clone())


def doubled(held):
    return held.repeat(2)


def spread(held):
    return held.std()


def copied(held):
    return held.clone()
"""
RUN = """
import numpy as np
import torch
import tools


def told():
    one, other = torch.tensor([1.0, 2.0]), np.array([1.0, 2.0])
    graph = tools.copied(tools.Graph(one))
    graph.x.add_(1)
    return [[tools.doubled(held).tolist() for held in (one, other)],
            [round(float(tools.spread(held)), 4) for held in (one, other)],
            one.tolist(), graph.x.tolist(), tools.copied(one).tolist()]
"""


def test_each_is_asked_what_it_is(tmp_path: Path) -> None:
    """The standard deviation is unbiased for torch; a tensor repeats as a whole."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"tools.py": TOOLS, "run.py": RUN})
    assert not report.findings
    of_torch, of_port = run_both(tmp_path, port, "import json, run; print(json.dumps(run.told()))")
    assert of_port == of_torch
    assert of_torch[1] == [0.7071, 0.5]


def test_a_receiver_that_is_computed_is_told(tmp_path: Path) -> None:
    """Asking twice would compute it twice."""
    code = f"{TOOLS}\n\ndef drawn(draw):\n    return draw().repeat(2)\n"
    _, report = converted(tmp_path, {"run.py": code})
    assert [finding.code for finding in report.findings] == ["receiver-unknown"]


TREES = """
import numpy as np
import torch


def on_leaves(function):
    def applied(held, *more):
        if isinstance(held, Tree):
            return Tree(applied(part, *more) for part in held)
        return function(held, *more)

    return applied


@on_leaves
def as_array(held):
    return held.cpu().numpy()


def moved(held, device):
    if type(held) is Tree:
        return Tree(moved(part, device) for part in held)
    return held.to(device)


def doubled(held):
    return held.repeat(2)


class Tree(tuple):
    def arrays(self):
        return as_array(self)

    def moved(self, device):
        return moved(self, device)

    def repeat(self, times):
        return Tree(part.repeat(times) for part in self)

    def doubled(self):
        return doubled(self)

    def flatten(self):
        return Tree(part.reshape(-1)[0] for part in self)
"""
USE = """
import torch
import trees


def results():
    one = torch.tensor([1.0, 2.0])
    tree = trees.Tree((one, one + 1)).moved("cpu")
    return [[part.tolist() for part in tree.arrays()], trees.as_array(one).tolist(),
            [part.tolist() for part in tree.doubled()], trees.doubled(one).tolist(),
            trees.moved(one, torch.device("cpu")).tolist()]
"""


def test_what_one_call_gives_is_asked_what_it_is(tmp_path: Path) -> None:
    """A function that a class calls with itself takes tensors, too."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"trees.py": TREES, "run.py": USE})
    assert not report.findings
    of_torch, of_port = run_both(
        tmp_path, port, "import json, run; print(json.dumps(run.results()))"
    )
    assert of_port == of_torch
    assert of_torch[0] == [[1.0, 2.0], [2.0, 3.0]]


SCORES = """
import numpy as np
import torch


def overlap(output, target):
    if torch.is_tensor(output):
        output = torch.sigmoid(output).data.cpu().numpy()
    if torch.is_tensor(target):
        target = target.data.cpu().numpy()
    output, target = output > 0.5, target > 0.5
    return (output & target).sum() / (output | target).sum()


def either(held, is_array):
    if is_array:
        held = held.numpy()
    return float((held > 0.5).sum()), round(float(held.std()), 4)


x = torch.arange(6.0) - 2
print(overlap(x, (x > 0).float()), either(x, True), either(x, False))
"""


def test_a_name_that_may_hold_an_array_after_a_condition(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"scores.py": SCORES})
    assert not report.findings
    assert run_port(port, "import scores") == run_original(tmp_path, "import scores")


MAKING = """
import hashlib
import torch


class Makers:
    def new(self, count):
        return [count]


def begun(group):
    state = {}
    for w in group["params"]:
        state["one"] = w.new(1).fill_(2)
        state["two"] = w.new([3, 4])
        state["none"] = w.data.new(2).zero_()
    return [part.tolist() for part in state.values()]


def made(held, count):
    return held.new(count)


def told():
    group = {"params": [torch.nn.Parameter(torch.ones(2, dtype=torch.float64))]}
    words = hashlib.new("md5", b"a").hexdigest()
    return begun(group), made(Makers(), 3), list(made(torch.ones(2), 3).shape), words
"""


def test_what_new_is_called_on_is_asked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": MAKING})
    assert not report.findings
    of_torch, of_port = run_both(tmp_path, port, "import json, net; print(json.dumps(net.told()))")
    assert of_port == of_torch


ASKING = """
import inspect
from torch import nn

KINDS = {"batch": nn.BatchNorm2d, "group": nn.GroupNorm, "relu": nn.ReLU, "conv": nn.Conv2d}


def is_class(kind):
    return isinstance(kind, type) and issubclass(kind, nn.Module)


def made(name, channels, **given):
    kind = KINDS[name]
    taken = inspect.signature(kind).parameters
    for word in "num_features", "num_channels", "in_channels", "out_channels":
        if word in taken:
            given[word] = channels
    return kind(**given)


def told():
    net = nn.Sequential(made("batch", 4), made("group", 4, num_groups=2), made("relu", 4))
    net.append(made("conv", 4, kernel_size=3))
    return [is_class(KINDS["batch"]), sum(one.numel() for one in net.parameters())]
"""


def test_a_class_is_asked_for_torchs_arguments(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, _ = converted(tmp_path, {"net.py": ASKING})
    of_torch, of_port = run_both(tmp_path, port, "import json, net; print(json.dumps(net.told()))")
    assert of_port == of_torch
