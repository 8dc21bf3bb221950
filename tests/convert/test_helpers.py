"""Small helpers of ports, beside torch's own."""

from __future__ import annotations

from typing import Any, Optional, Union

import pytest

from isograd.convert.helpers import is_of_type, reduction_number

torch = pytest.importorskip("torch")

VALUES = [1, 2.5, "text", None, [1, 2], [1, "a"], (1, "a"), {"a": 1}, {"a": "b"}, {1: 2}]
KINDS = [
    int,
    str,
    (int, str),
    list[int],
    list[Optional[int]],  # noqa: UP045 - people write both
    tuple[int, str],
    dict[str, int],
    dict[int, int],
    Optional[list[int]],  # noqa: UP045
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_fits_a_type_is_what_fits_it_in_torch(value: Any, kind: Any) -> None:
    assert is_of_type(value, kind) == torch.jit.isinstance(value, kind)


def test_of_a_union_torch_takes_none_too_and_a_port_does_not() -> None:
    union = Union[int, str]  # noqa: UP007
    assert [is_of_type(value, union) for value in (1, "a", 2.5, None)] == [True, True, False, False]
    assert torch.jit.isinstance(None, union)


def test_newer_spellings_fit_too() -> None:
    assert is_of_type([1, "a"], list[int | str])
    assert is_of_type((1, 2, 3), tuple[int, ...])
    assert not is_of_type((1, "a"), tuple[int, ...])
    assert is_of_type([], list[int])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_reductions_number_is_torchs(reduction: str) -> None:
    assert reduction_number(reduction) == torch.nn._reduction.get_enum(reduction)


def test_another_reduction_has_no_number() -> None:
    with pytest.raises(ValueError, match="median is not a valid value"):
        reduction_number("median")
