"""The same numbers are recognised in another layout, and the first function that differs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.base import FunctionCall, ReplayRequest
from isograd.tensors import tensor_value
from isograd.verify.culprit import Culprit, Fingerprint, find_culprit

VALUES = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
REQUEST = ReplayRequest(0, (), (), ())


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (VALUES, True),
        (VALUES * np.float32(1 + 1e-6), True),
        (VALUES * np.float32(1 + 1e-4), False),
        (VALUES.transpose(2, 0, 1), True),
        (VALUES.reshape(12, 5), True),
        (VALUES[::-1], False),
        (VALUES[:2], False),
        (-VALUES, False),
    ],
    ids=["equal", "rounded", "scaled", "transposed", "reshaped", "reversed", "part", "negated"],
)
def test_the_same_numbers_in_another_layout(other: np.ndarray, same: bool) -> None:
    assert Fingerprint(VALUES).same_as(Fingerprint(other)) is same


def test_any_order_can_be_refused() -> None:
    first, second = Fingerprint(VALUES), Fingerprint(VALUES.transpose(1, 0, 2))
    assert not first.same_as(second, any_order=False)


def test_the_tolerance_is_relative() -> None:
    first, second = Fingerprint(1e-6 * VALUES), Fingerprint(1.0005e-6 * VALUES)
    assert not first.same_as(second)
    assert first.same_as(second, tolerance=1e-3)


def test_a_reordering_has_exactly_the_same_elements() -> None:
    assert Fingerprint(np.roll(VALUES, 1, 0)).is_reordered(Fingerprint(VALUES))
    assert not Fingerprint(VALUES + 1).is_reordered(Fingerprint(VALUES))
    assert not Fingerprint(VALUES[:1]).is_reordered(Fingerprint(VALUES))


def test_what_is_masked_does_not_count() -> None:
    first, second = np.array([1.0, -np.inf, np.nan]), np.array([1.0, -1e9, np.nan])
    assert Fingerprint(first).same_as(Fingerprint(second))


def events(*steps: tuple[str, np.ndarray, tuple[int, ...]]) -> tuple[FunctionCall, ...]:
    return tuple(FunctionCall("block", name, of, tensor_value(v)) for name, v, of in steps)


def asked(reference: Any, port: Any) -> Any:
    """Workers that answer with these functions, or raise."""

    def answer(found: Any) -> SimpleNamespace:
        def ask(method: Any, request: ReplayRequest) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        return SimpleNamespace(ask=ask)

    return SimpleNamespace(reference=answer(reference), port=answer(port))


SCALED = events(("mul", 2 * VALUES, ()), ("add", 2 * VALUES + 1, (0,)))


def test_the_first_function_that_the_port_never_yields() -> None:
    port = events(("mul", 2 * VALUES, ()), ("add", 2 * VALUES + 3, ()))
    assert find_culprit(asked(SCALED, port), REQUEST, REQUEST) == Culprit("block", "add")


def test_the_ports_line_is_that_of_the_value_most_like_the_wanted_one() -> None:
    ours = (FunctionCall("block", "add", (), tensor_value(VALUES), "net.py:3"),)
    theirs = tuple(
        FunctionCall("", "any", (), tensor_value(values), f"port.py:{line}")
        for line, values in enumerate((VALUES[::-1] ** 2, VALUES + 0.1, -VALUES[:1]), 1)
    )
    found = find_culprit(asked(ours, theirs), REQUEST, REQUEST)
    assert found == Culprit("block", "add", "net.py:3", "port.py:2")


def test_a_port_may_compute_in_other_steps_and_meet_again() -> None:
    port = events(("fused", 2 * VALUES + 1, ()))
    assert find_culprit(asked(SCALED, port), REQUEST, REQUEST) is None


def test_a_side_that_cannot_be_traced_names_nothing() -> None:
    error = UserCodeError("it raised", "Mend it.")
    assert find_culprit(asked(SCALED, error), REQUEST, REQUEST) is None
