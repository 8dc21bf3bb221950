"""What a subclass gives to the conformance tests, and what they share."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.frameworks.base import (
    Framework,
    SideSpec,
    Tensors,
)
from isograd.tensors import TensorValue, tensor_value
from isograd.testing.values import plain_attributes

BATCH = 6
FEATURES = 4


def side_of(framework: str, source: Path) -> SideSpec:
    """The side of a file that defines `build`, `loss` and `optimizer`."""
    name = source.name
    return SideSpec(
        framework,
        f"{name}:build",
        str(source.parent),
        loss=f"{name}:loss",
        optimizer=f"{name}:optimizer",
    )


class ConformanceNetwork:
    """The network that every group of guarantees is tested on; see `FrameworkConformance`."""

    #: Whether the arithmetics other than NATIVE are obeyed.
    has_arithmetics = True
    #: Relative tolerance of equal computations in another grouping, in float32.
    tolerance = 1e-5
    #: Attributes of modules that the framework itself changes in a plain call.
    bookkeeping: frozenset[str] = frozenset()

    def open(self) -> Framework:
        """A fresh adapter."""
        raise NotImplementedError

    def side(self) -> SideSpec:
        """The network described above, with its loss and optimizer."""
        raise NotImplementedError

    def modules(self, framework: Any) -> dict[str, Any]:
        """The live modules by name, to see whether anything stays patched."""
        return dict(framework._model.named_modules())

    @pytest.fixture
    def framework(self) -> Framework:
        """An adapter that has built the network."""
        framework = self.open()
        framework.build(self.side(), 0)
        return framework

    @pytest.fixture
    def inputs(self) -> dict[str, TensorValue]:
        """Two arguments by position and one by keyword: (BATCH, FEATURES) and (FEATURES,) float32,
        (BATCH,) int64.
        """
        generator = np.random.default_rng(5)
        return {
            "0": tensor_value(generator.standard_normal((BATCH, FEATURES)).astype(np.float32)),
            "1": tensor_value(np.array([0, 1, 2, 6, 6, 3], np.int64)),
            "scale": tensor_value(generator.uniform(0.5, 2.0, FEATURES).astype(np.float32)),
        }

    @pytest.fixture
    def targets(self) -> list[TensorValue]:
        """What the loss compares the logits with: (BATCH, FEATURES) float32."""
        drawn = np.random.default_rng(6).standard_normal((BATCH, FEATURES))
        return [tensor_value(drawn.astype(np.float32))]

    @pytest.fixture
    def passed(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> Tensors:
        """The results of a recorded pass in training mode with gradients.

        inputs, targets: the shapes and dtypes of `inputs` and `targets`.
        returns: the shapes and dtypes of the network's tensors.
        """
        return framework.forward("train", inputs, targets, record=True, backward=True)

    def _failing(self, where: str) -> Framework:
        framework = self.open()
        side = self.side()
        framework.build(dataclasses.replace(side, model_kwargs={"fail": where}), 0)
        return framework

    def _attributes(self, modules: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What each module holds, as far as it can be compared: names, types, hooks, modes."""
        return {
            name: {k: v for k, v in plain_attributes(vars(module)) if k not in self.bookkeeping}
            for name, module in modules.items()
        }

    def _needs_arithmetics(self) -> None:
        if not self.has_arithmetics:
            pytest.skip("this framework only plays the port")
