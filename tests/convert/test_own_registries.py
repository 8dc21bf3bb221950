"""Attributes of a project's own classes that have the names of torch's private dictionaries."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

OWN = """
import torch
from torch import nn


class Registry:
    _modules = []

    def __init__(self):
        self._parameters = {}

    def add(self, name, value):
        self._modules.append(name)
        self._parameters[name] = value
        return self

    @classmethod
    def clear(cls):
        cls._modules = []


class Mixed:
    def parts(self):
        return list(self._modules), list(self._parameters)


class Net(Mixed, nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(1))
"""
RUN = """
from own import Net, Registry


class More(Registry):
    def count(self):
        return len(self._modules) + len(self._parameters)


def results():
    one = More().add("one", 1).add("two", 2)
    before = [one.count(), list(one._modules), sorted(one._parameters.items()), Net().parts()]
    More.clear()
    return [before, list(one._modules), list(Net()._modules)]
"""


def test_a_class_that_is_no_module_keeps_its_names(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"own.py": OWN, "run.py": RUN})
    assert not report.findings
    asked = "import json, run; print(json.dumps(run.results()))"
    of_torch, of_port = run_both(tmp_path, port, asked)
    assert of_port == of_torch
    assert of_torch[0][:2] == [4, ["one", "two"]]
