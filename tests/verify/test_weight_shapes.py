"""What the shapes of two weights say by themselves."""

from __future__ import annotations

import pytest

from isograd.verify.parameters import _cause_of_shape


@pytest.mark.parametrize(
    ("kind", "reference", "port", "cause"),
    [
        ("Conv2d", (16, 3, 3, 3), (16, 6, 3, 3), "conv.groups"),
        ("Conv1d", (8, 1, 5), (8, 8, 5), "conv.groups"),
        ("Conv2d", (16, 3, 3, 3), (16, 3, 5, 5), None),
        ("Conv2d", (16, 3, 3, 3), (8, 3, 3, 3), None),
        ("ConvTranspose2d", (16, 3, 3, 3), (16, 6, 3, 3), None),
        ("Linear", (16, 3), (16, 6), None),
    ],
)
def test_groups_change_the_second_axis_alone(
    kind: str, reference: tuple[int, ...], port: tuple[int, ...], cause: str | None
) -> None:
    found = _cause_of_shape(kind, reference, port)
    assert (found.id if found else None) == cause
