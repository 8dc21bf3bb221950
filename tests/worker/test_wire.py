"""Values that cross the pipe arrive as they were, and nothing else crosses it."""

from __future__ import annotations

import dataclasses
import io
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isograd.frameworks.base import Arithmetic, CallInfo, ReplayRequest, SideSpec
from isograd.tensors import TensorValue, bfloat16_from_bits, tensor_value
from isograd.worker.wire import read_message, write_message

DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool", "complex64"]


def there_and_back(value: Any) -> Any:
    stream = io.BytesIO()
    write_message(stream, value)
    stream.seek(0)
    return read_message(stream)


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, TensorValue):
        assert found.dtype == expected.dtype
        assert found.values.dtype == expected.values.dtype
        assert found.shape == expected.shape
        assert found.values.tobytes() == expected.values.tobytes()
        return True
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in expected)
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


tensors = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(
        dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    ).map(lambda array: TensorValue(np.asarray(array), dtype))
)
halves = arrays.arrays(np.uint16, arrays.array_shapes(min_dims=0, max_dims=2)).map(
    lambda bits: TensorValue(bfloat16_from_bits(np.asarray(bits)), "bfloat16")
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), tensors, halves
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(values)
@settings(max_examples=150, deadline=None)
def test_nested_values_arrive_as_they_were(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_several_messages_follow_each_other() -> None:
    stream = io.BytesIO()
    for value in ("one", [tensor_value(np.arange(3))], {"three": 3}):
        write_message(stream, value)
    stream.seek(0)
    assert read_message(stream) == "one"
    assert read_message(stream)[0].shape == (3,)
    assert read_message(stream) == {"three": 3}


def test_an_array_that_is_not_contiguous_arrives_in_order() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(there_and_back(tensor_value(array)).values, array)


def test_values_of_the_protocol_arrive() -> None:
    value = tensor_value(np.float32([1, math.nan, -math.inf]))
    request = ReplayRequest(3, (4, 5), (value, None), ((None,), (value,)), parameters=("a.b",))
    found = there_and_back(request)
    assert isinstance(found, ReplayRequest)
    assert dataclasses.replace(found, inputs=(), pin_outputs=()) == dataclasses.replace(
        request, inputs=(), pin_outputs=()
    )
    np.testing.assert_array_equal(found.inputs[0].values, value.values)
    for other in (
        Arithmetic(float64=True),
        CallInfo("a", 1, None, ((2, 3),), ()),
        SideSpec("torch", "a.py:b", "/c", {"width": 3, "names": ["x"]}),
    ):
        assert there_and_back(other) == other


def test_plain_numpy_numbers_arrive_as_numbers() -> None:
    assert there_and_back([np.float32(0.5), np.int64(3), np.bool_(True)]) == [0.5, 3, True]


@dataclasses.dataclass(frozen=True)
class Stranger:
    name: str


@dataclasses.dataclass(frozen=True)
class Impostor:
    name: str


Impostor.__name__ = "CallInfo"


@pytest.mark.parametrize("value", [Stranger("x"), Impostor("x"), object(), {1, 2}, np.zeros(2)])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="does not cross the pipe"):
        there_and_back(value)


def test_every_truncation_is_the_end_of_the_stream() -> None:
    stream = io.BytesIO()
    write_message(stream, {"a": tensor_value(np.arange(4.0)), "b": [1, 2]})
    whole = stream.getvalue()
    for length in range(len(whole)):
        with pytest.raises(EOFError):
            read_message(io.BytesIO(whole[:length]))


def test_noise_is_not_read_as_a_message() -> None:
    with pytest.raises(EOFError, match="does not hold a message"):
        read_message(io.BytesIO(b"Warning: something was printed here"))
