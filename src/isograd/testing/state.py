"""Guarantees of a framework adapter: what a network is made of, and its state."""

from __future__ import annotations

import re

import numpy as np
import pytest

from isograd.errors import CaseError
from isograd.frameworks.base import (
    Framework,
)
from isograd.tensors import tensor_value
from isograd.testing.network import FEATURES, ConformanceNetwork
from isograd.testing.values import assert_same, differ, moved, untied


class StateGuarantees(ConformanceNetwork):
    """What a network is made of, and its state."""

    def test_describes_itself(self, framework: Framework) -> None:
        """`describe` says what a report shows of a side."""
        found = framework.describe()
        assert set(found) >= {"framework", "framework_version", "python_version", "device"}
        assert all(isinstance(text, str) for text in found.values())

    def test_structure(self) -> None:
        """`build` lists modules, parameters, buffers and ties by the framework's own names."""
        structure = self.open().build(self.side(), 0)
        modules = {m.name: m for m in structure.modules}
        assert set(modules) >= set("first embed norm act twice drop gate gate.linear tied".split())
        assert modules["twice"].library
        assert not modules["gate"].library
        assert modules["gate"].where is not None
        parameters = {p.name: p for p in structure.parameters}
        by_place = {(p.module, p.attribute): p for p in structure.parameters}
        first = next(p for p in structure.parameters if p.module == "first")
        tied = next(p for p in structure.parameters if p.module == "tied")
        assert (first.tied_to, tied.tied_to) == (None, first.name)
        assert first.trainable
        assert first.shape == (FEATURES, FEATURES)
        assert first.dtype == "float32"
        assert len(parameters) == len(by_place) == len(structure.parameters)
        statistics = [p for p in structure.parameters if p.module == "norm" and not p.trainable]
        assert len(statistics) >= 2

    def test_build_is_reproducible(self) -> None:
        """The seed decides the weights."""
        states = []
        for seed in (0, 0, 1):
            framework = self.open()
            framework.build(self.side(), seed)
            states.append(framework.state())
        assert_same(states[0], states[1])
        assert any(differ(states[0][name], states[2][name]) for name in states[0])

    def test_state_round_trip(self, framework: Framework) -> None:
        """What `load_state` gets, `state` gives, and neither shares memory with the network."""
        fresh = moved(untied(framework.state()))
        framework.load_state(fresh)
        found = framework.state()
        assert_same(untied(found), fresh)
        for value in fresh.values():
            np.copyto(value.values, 0)
        assert_same(framework.state(), found)

    def test_load_state_refuses_unknown_names(self, framework: Framework) -> None:
        """A name that the network lacks is an error, not ignored."""
        with pytest.raises(CaseError, match=r"has no tensor 'nothing' of shape \(2,\)"):
            framework.load_state({"nothing": tensor_value(np.zeros(2, np.float32))})

    def test_load_state_refuses_wrong_shapes(self, framework: Framework) -> None:
        """A shape that would have to be broadcast is an error."""
        name = next(iter(framework.state()))
        with pytest.raises(CaseError, match=re.escape(repr(name))):
            framework.load_state({name: tensor_value(np.zeros((1, 1), np.float32))})
