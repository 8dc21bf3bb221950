"""Tensors and calls as the conformance tests compare them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from isograd.frameworks.base import (
    CallInfo,
    Tensors,
)
from isograd.metrics import as_float64
from isograd.tensors import Array, TensorValue, tensor_value


def call_of(calls: tuple[CallInfo, ...], module: str, occurrence: int = 0) -> int:
    """The index of a call of a module."""
    return next(i for i, c in enumerate(calls) if (c.module, c.occurrence) == (module, occurrence))


def children_of(calls: tuple[CallInfo, ...], index: int) -> tuple[int, ...]:
    """The indices of the calls directly inside a call."""
    return tuple(i for i, call in enumerate(calls) if call.parent == index)


def shifted_by(
    values: Sequence[TensorValue], shifts: tuple[TensorValue | None, ...], step: float
) -> tuple[TensorValue | None, ...]:
    """Values moved by a multiple of their shifts; None where there is no shift.

    values: any shapes and dtypes.
    shifts: the shapes of values, any dtypes.
    returns: the shapes and dtypes of values.
    """
    result: list[TensorValue | None] = []
    for value, shift in zip(values, shifts, strict=True):
        if shift is None:
            result.append(None)
            continue
        fresh = as_float64(value.values) + step * as_float64(shift.values)
        result.append(tensor_value(fresh.astype(shift.values.dtype)))
    return tuple(result)


def dot(first: TensorValue, second: TensorValue) -> float:
    """The scalar product of two tensors.

    first, second: one shape, any dtypes.
    """
    return float(np.vdot(as_float64(first.values), as_float64(second.values)))


def outputs_of(tensors: Tensors) -> Tensors:
    """The outputs among recorded tensors.

    tensors: any shapes and dtypes.
    returns: their shapes and dtypes.
    """
    return {k: v for k, v in tensors.items() if k.startswith("output.")}


def trained_in(passed: Tensors) -> list[str]:
    """The parameters that have a gradient in a pass.

    passed: any shapes and dtypes.
    """
    prefix = "gradient.parameter."
    return [k.removeprefix(prefix) for k in passed if k.startswith(prefix)]


def untied(state: Tensors) -> Tensors:
    """A state may hold a shared tensor once or under each of its names.

    state, returns: any shapes and dtypes.
    """
    return {name: value for name, value in state.items() if not name.startswith("tied.")}


def moved(state: Tensors) -> Tensors:
    """A state of other numbers.

    state, returns: any shapes and real dtypes.
    """
    generator = np.random.default_rng(1)
    result = {}
    for name, value in state.items():
        drawn: Array = generator.uniform(1, 9, value.shape).astype(value.values.dtype)
        result[name] = TensorValue(drawn, value.dtype)
    return result


def differ(first: TensorValue, second: TensorValue) -> bool:
    """Whether two tensors differ in any bit.

    first, second: any shapes and dtypes.
    """
    return not np.array_equal(first.values, second.values)


def assert_same(found: Tensors, expected: Tensors) -> None:
    """Names, dtypes and bits agree.

    found, expected: any shapes and dtypes.
    """
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype, key
        np.testing.assert_array_equal(found[key].values, value.values, err_msg=key)


def assert_close(found: Tensors, expected: Tensors, tolerance: float) -> None:
    """What is expected is found, nearly.

    found, expected: any shapes and dtypes; the shapes must agree.
    """
    for key, value in expected.items():
        assert found[key].shape == value.shape, key
        np.testing.assert_allclose(
            as_float64(found[key].values),
            as_float64(value.values),
            rtol=tolerance,
            atol=tolerance,
            err_msg=key,
        )


def plain_attributes(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What of an object can be compared: plain values, sizes of containers, types of the rest."""
    for name, value in attributes.items():
        if isinstance(value, (bool, int, float, str)) or value is None:
            yield name, value
        elif isinstance(value, (dict, list, set)):
            yield name, len(value)
        else:
            yield name, type(value).__name__
