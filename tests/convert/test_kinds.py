"""Layer classes in lists that loops go through: what instances are of, or what makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

LOOPS = """
from torch import nn

KINDS = (nn.Identity, nn.LayerNorm)
NAMED = [("identity", nn.Identity, nn.Identity), ("norm", nn.LayerNorm, nn.ReLU)]
MADE = (nn.Identity, nn.ReLU)


def told():
    net = nn.Sequential(nn.Identity(), nn.LayerNorm(2))
    found = [[sum(isinstance(m, k) for m in net) for k in (nn.Identity, nn.LayerNorm, nn.ReLU)]]
    for kind in KINDS:
        found.append([isinstance(m, kind) for m in net])
    for kind in [nn.Identity, nn.Linear]:
        found.append([isinstance(m, kind) for m in net])
    for name, kind, maker in NAMED:
        found.append([name, [isinstance(m, kind) for m in net], type(maker(2)).__name__])
    found.append([any(isinstance(m, k) for m in net) for k in KINDS])
    for kinds, what in (((nn.Identity, nn.ReLU), "first"), ((nn.Linear,), "second")):
        found.append([what, [isinstance(m, kinds) for m in net]])
    found.append([[isinstance(m, k) for m in net] for _, k in ((1, nn.Identity), (2, nn.ReLU))])
    return found, [type(make(3)).__name__ for make in MADE]
"""


def test_a_loop_asks_for_instances_of_the_classes_in_a_list(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": LOOPS})
    assert not report.needs_action
    of_torch, of_port = run_both(
        tmp_path, port, "import json, net; print(json.dumps(net.told()[0]))"
    )
    for one in (*of_torch, *of_port):
        if isinstance(one[-1], str):
            del one[-1]  # the name of MindSpore's class
    assert of_port == of_torch


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("[isinstance(m, k) for k in (nn.Identity,)]", "in (nn.Identity,)]"),
        ("[k(3) for k in (nn.Identity,)]", "in (identity_cell,)]"),
        (
            "[isinstance(m, k) or f(3) for k, f in ((nn.Identity, nn.Identity),)]",
            "in ((nn.Identity, identity_cell),)]",
        ),
        ("[isinstance(k(3), k) for k in (nn.Identity,)]", "in (identity_cell,)]"),
    ],
)
def test_what_a_loop_calls_makes_layers(code: str, expected: str) -> None:
    port, _ = port_of(f"from torch import nn\n\n\ndef ask(m):\n    return {code}\n")
    assert port.rstrip().endswith(expected)


ASKED = """
import torch
from torch import nn

KINDS = (nn.Conv2d, nn.Linear)

class Own:
    kind = nn.ReLU

class Mine(nn.ReLU):
    pass

def make(layer, *given):
    assert isinstance(layer, type) and issubclass(layer, nn.Module)
    return layer(*given)

def ask(m, kind):
    found = [isinstance(m, kind), isinstance(m, (kind, int)), isinstance(m, kind | int)]
    return [*found, isinstance(m, KINDS), isinstance(m, Own.kind), isinstance(m, ((kind,), KINDS))]

def told():
    made = [make(nn.BatchNorm2d, 3), make(nn.ReLU), make(nn.Conv2d, 3, 4, 1), make(nn.Linear, 2, 2)]
    made += [make(Mine), make(nn.Sequential), nn.ReLU(), nn.BatchNorm2d(2), 3]
    kinds = (nn.BatchNorm2d, nn.ReLU, nn.Conv2d, Mine, nn.Module, nn.Sequential, nn.Identity, int)
    layer = nn.ReLU
    found = [ask(m, kind) for m in made for kind in kinds]
    return found, isinstance(layer(), layer), isinstance(3, layer), isinstance(3, type(3))
"""


def test_every_layer_is_an_instance_of_the_class_that_a_variable_holds(tmp_path: Path) -> None:
    """Whether the class of the port, another file's or MindSpore's own made it."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": ASKED})
    assert not report.needs_action
    code = "import json, net; print(json.dumps(net.told()))"
    of_torch, of_port = run_both(tmp_path, port, code)
    assert of_port == of_torch


def test_a_class_of_a_library_that_a_function_imports_is_no_variable() -> None:
    code = """from torch import nn

def look(x):
    import numpy as np
    return isinstance(x, type), isinstance(x, np.lib.npyio.NpzFile)

def run(norm=nn.BatchNorm2d):
    look(norm)
"""
    port, _ = port_of(code)
    assert "isinstance(x, np.lib.npyio.NpzFile)" in port
    assert "_makes" not in port
