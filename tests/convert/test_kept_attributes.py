"""`self.total += x` changes the tensor that something else has kept of the attribute."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch


class Meter:
    def __init__(self):
        self.total = torch.zeros(2)
        self.count = 0
        self.log = []

    @property
    def sum(self):
        return self.total

    def update(self, value):
        self.total += value
        self.count += 1
        return self.total

    def keep(self):
        self.log.append(self.total)
        return self.count

    def twice(self):
        before = self.total
        self.total *= 2
        return before


def in_a_list():
    meter = Meter()
    for i in range(3):
        meter.update(i)
        meter.keep()
    return meter.log


def by_the_caller():
    meter = Meter()
    first = meter.update(1.0)
    second = meter.update(torch.ones(2))
    return [first, second]


def by_a_property():
    meter = Meter()
    seen = meter.sum
    meter.update(2)
    return [seen, torch.tensor(meter.count)]


def in_one_method():
    meter = Meter()
    meter.update(1)
    return [meter.twice(), meter.total]


def told():
    made = (in_a_list, by_the_caller, by_a_property, in_one_method)
    return [[part.tolist() for part in one()] for one in made]
"""


def test_what_is_kept_of_an_attribute_sees_its_changes(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _CODE})
    assert not report.findings
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.told()))")
    assert found == expected
    assert expected[1] == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    "use",
    [
        "return m.total / 2",
        "a = m.update(1)\n    return a",
        "a = m.total.clone()\n    m.update(1)\n    return a",
        "a = m.update(1)\n    a = m.update(2)\n    return a",
        "log = []\n    log.append(m.total.clone())\n    return log",
        "log = []\n    log.append(m.count)\n    return log",
    ],
)
def test_what_nothing_keeps_is_added_to_as_it_was(use: str) -> None:
    start = _CODE.partition("    def keep")[0]
    text, _ = port_of(f"{start}\n\ndef f(m: Meter):\n    {use}\n")
    assert "self.total += value" in text
    assert "self.count += 1" in text
