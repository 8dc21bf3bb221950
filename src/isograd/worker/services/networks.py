"""Builds a network and holds its state; micro-benchmarks of the device profile."""

from __future__ import annotations

from typing import Any

from isograd.frameworks import kernels
from isograd.frameworks.base import Arithmetic, Floors, SideSpec, Structure, Tensors
from isograd.noise.envelope import Errors
from isograd.worker.batch import batch_of
from isograd.worker.protocols import Kernels, Networks
from isograd.worker.services.base import FrameworkService
from isograd.worker.services.passes import errors_of


class NetworkService(FrameworkService, Networks, Kernels):
    """Serves `Networks` and `Kernels`."""

    def build(self, spec: SideSpec, seed: int) -> Structure:
        """Import the callables, seed the framework and build the network."""
        return self._framework.build(spec, seed)

    def describe(self) -> dict[str, str]:
        """Versions and the device."""
        return self._framework.describe()

    def state(self) -> Tensors:
        """All parameters and buffers by name."""
        return self._framework.state()

    def load_state(self, tensors: Tensors) -> None:
        """Overwrite parameters and buffers."""
        self._framework.load_state(tensors)

    def set_floors(self, floors: Floors) -> None:
        """Give the device profile's noise floors to the framework."""
        self._framework.floors = dict(floors)

    def keep_scale(self, keeps: bool) -> None:
        """Whether neutral dropout multiplies by 1 / (1 - p)."""
        self._framework.keep_scale(keeps)

    def batch(
        self, key: str, name: str, folder: str, seed: int, step: int
    ) -> tuple[list[Any], dict[str, Any]]:
        """What a callable of the case returns for a step: positional and keyword arguments."""
        return batch_of(key, name, folder, seed, step)

    def measure_kernel(
        self,
        expression: str,
        inputs: Tensors,
        labels: Tensors,
        variants: list[Arithmetic],
        floors: Floors,
    ) -> dict[str, Errors]:
        """A micro-benchmark of the device profile in torch, with its envelope."""

        def run(arithmetic: Arithmetic) -> Tensors:
            return kernels.run_torch(expression, inputs, labels, arithmetic, floors)

        return errors_of(run, variants)

    def run_kernel(self, expression: str, inputs: Tensors, labels: Tensors) -> Tensors:
        """The same micro-benchmark in MindSpore; nothing where this build has no such kernel."""
        try:
            return kernels.run_mindspore(expression, inputs, labels)
        except Exception:  # a kernel that this device lacks has no floor
            return {}
