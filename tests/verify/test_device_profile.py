"""The device profile is measured once for a machine, and a damaged cache is measured anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.frameworks.kernels import Kernel, load_kernels
from isograd.noise.envelope import Errors
from isograd.tensors import tensor_value
from isograd.verify import device_profile as profile
from isograd.worker.protocols import Kernels, Networks

KERNEL = Kernel("x", ("x", "y"), {"x": (3,)}, (0.5, 2.0), ("tanh",), ("tanh_backward",), 0)
FLOORS = {"tanh": [[1.0, 3.0]]}


class FakeWorker:
    """Describes itself, and answers a micro-benchmark with an error that grows with the input."""

    def __init__(self, framework: str, error: float = 0.0) -> None:
        self.framework = framework
        self.error = error
        self.asked: list[str] = []

    def ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        self.asked.append(method.__name__)
        if method is Networks.describe:
            return {"framework": self.framework, "framework_version": "1"}
        values = np.ones(4)
        if method is Kernels.measure_kernel:
            wide = tensor_value(values)
            return {key: Errors(wide, "float32", 1e-6) for key in ("output", "gradient.x")}
        scale = float(np.abs(arguments[1]["x"].values).max())
        return {
            "output": tensor_value(values + self.error * scale),
            "gradient.x": tensor_value(values),
        }


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[FakeWorker, FakeWorker]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(profile, "load_kernels", lambda: (KERNEL,))
    return FakeWorker("torch"), FakeWorker("mindspore", error=1e-5)


def cached(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "isograd").iterdir()
    return path


def floors(workers: Any, notes: list[str] | None = None) -> Any:
    return profile.floors_of(*workers, (notes if notes is not None else []).append)


def test_a_noisy_kernel_raises_its_operator(workers: Any) -> None:
    notes: list[str] = []
    found = floors(workers, notes)
    assert set(found) == {"tanh"}
    (low, first), (high, second) = found["tanh"]
    assert (low, high) == (0.5, 2.0)
    assert 1.0 <= first < second
    assert len(notes) == 1


def test_a_second_run_reads_what_the_first_measured(workers: Any, tmp_path: Path) -> None:
    found = floors(workers)
    assert json.loads(cached(tmp_path).read_text()) == found
    for worker in workers:
        worker.asked.clear()
    assert floors(workers) == found
    assert {name for w in workers for name in w.asked} == {"describe"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"tanh": 3}', '{"tanh": [[1.0, 0.5]]}', '{"tanh": [[-1.0, 2.0]]}'],
)
def test_a_damaged_cache_is_measured_anew(text: str, workers: Any, tmp_path: Path) -> None:
    found = floors(workers)
    cached(tmp_path).write_text(text)
    assert floors(workers) == found
    assert json.loads(cached(tmp_path).read_text()) == found


def test_a_cache_is_believed(workers: Any, tmp_path: Path) -> None:
    floors(workers)
    cached(tmp_path).write_text(json.dumps(FLOORS))
    assert floors(workers) == FLOORS


def test_a_cache_that_cannot_be_written_is_said(
    workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    notes: list[str] = []
    assert "tanh" in floors(workers, notes)
    assert "could not be kept" in notes[-1]


def test_other_pairs_of_frameworks_have_no_profile() -> None:
    workers = FakeWorker("fake"), FakeWorker("mindspore")
    assert floors(workers) == {}
    assert workers[0].asked == []


@pytest.mark.parametrize(
    "kernel", [k for k in load_kernels() if k.terms], ids=lambda k: str(k.inputs)
)
def test_floors_of_convolutions_go_by_the_number_of_terms(kernel: Kernel) -> None:
    """The terms that kernels.toml states are those of the shapes that it states."""
    torch = pytest.importorskip("torch")
    leaves = {n: torch.ones(s, requires_grad=True) for n, s in kernel.inputs.items()}
    output = eval(kernel.torch, {"torch": torch, "F": torch.nn.functional, **leaves})
    output.sum().backward()
    found = (output.max(), leaves["x"].grad.max(), leaves["w"].grad.max())
    assert tuple(int(value) for value in found) == kernel.terms
    assert kernel.place("gradient.x", 1.0) == kernel.terms[1]
