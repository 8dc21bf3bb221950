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
