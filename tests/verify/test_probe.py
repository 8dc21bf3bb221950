"""Constants that would hide a fault are moved, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.frameworks.base import ParameterInfo, Tensors
from isograd.tensors import TensorValue, tensor_value
from isograd.verify.probe import probe_state


def info(name: str, shape: tuple[int, ...], **changes: object) -> ParameterInfo:
    kept: dict[str, object] = {"trainable": True, **changes}
    return ParameterInfo(name, "", name, shape, "float32", **kept)  # type: ignore[arg-type]


def probed(values: np.ndarray, **changes: object) -> np.ndarray:
    name = str(changes.pop("attribute", "weight"))
    state: Tensors = {name: tensor_value(values.astype(np.float32))}
    found, moved = probe_state(state, (info(name, values.shape, **changes),), 0)
    assert moved == ((name,) if found[name] is not state[name] else ())
    return found[name].values


@pytest.mark.parametrize("constant", [1.0, 0.0, -3.0])
def test_constant_parameters_are_moved_a_little(constant: float) -> None:
    found = probed(np.full((64, 4), constant))
    assert found.dtype == np.float32
    assert np.ptp(found) > 0
    assert abs(found.mean() - constant) < 0.1
    assert np.abs(found - constant).max() < 2.0


def test_running_statistics_are_moved_and_variances_stay_positive() -> None:
    buffer = {"trainable": False, "is_buffer": True}
    assert probed(np.ones(500), attribute="running_var", **buffer).min() >= 0.5
    assert np.ptp(probed(np.zeros(5), attribute="running_mean", **buffer)) > 0


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        (np.arange(4.0), {}),
        (np.ones(4), {"trainable": False}),
        (np.ones(4), {"tied_to": "first"}),
        (np.ones(0), {}),
    ],
    ids=["trained", "buffer", "tied", "empty"],
)
def test_everything_else_is_left(values: np.ndarray, changes: dict[str, object]) -> None:
    assert np.array_equal(probed(values, **changes), values)


def test_integers_are_left() -> None:
    state = {"count": tensor_value(np.zeros(3, np.int64))}
    found, moved = probe_state(state, (info("count", (3,)),), 0)
    assert (found, moved) == (state, ())


def test_bfloat16_stays_exact() -> None:
    state = {"weight": TensorValue(np.ones(100, np.float32), "bfloat16")}
    found, _ = probe_state(state, (info("weight", (100,)),), 0)
    assert found["weight"].dtype == "bfloat16"
    assert not np.any(found["weight"].values.view(np.uint32) & 0xFFFF)


def test_the_seed_decides() -> None:
    state = {"weight": tensor_value(np.ones(9, np.float32))}
    infos = (info("weight", (9,)),)
    found = [probe_state(state, infos, seed)[0]["weight"].values for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
