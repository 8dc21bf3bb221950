"""Methods of what may be a tensor, an array of numpy's or an object of the program's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

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
