"""Transforms carry parameters to the port and gradients back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isograd.pairing import (
    Chain,
    Concatenate,
    Identity,
    Reshape,
    Split,
    Transform,
    Transpose,
)
from isograd.pairing.transforms import chain, transform_between

Shape = tuple[int, ...]


@st.composite
def transforms_with_shapes(draw: st.DrawFn) -> tuple[Transform, list[Shape]]:
    """A transform and the shapes of the arrays that it takes."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    axes = tuple(draw(st.permutations(range(3))))
    return draw(
        st.sampled_from(
            [
                (Identity(), [(rows, columns)]),
                (Transpose(axes), [(rows, columns, 2)]),
                (Reshape((1, rows, columns), (rows, columns)), [(1, rows, columns)]),
                (Concatenate(0, sizes), [(size, columns) for size in sizes]),
                (Split(0, sizes), [(sum(sizes), columns)]),
                (
                    Chain((Transpose((1, 0)), Split(0, sizes))),
                    [(columns, sum(sizes))],
                ),
                (
                    Chain((Concatenate(0, sizes), Transpose((1, 0)))),
                    [(size, columns) for size in sizes],
                ),
            ]
        )
    )


@given(transforms_with_shapes())
def test_inverse_gives_the_arrays_back(case: tuple[Transform, list[Shape]]) -> None:
    transform, shapes = case
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]

    back = transform.invert(transform.apply(arrays))

    assert len(back) == len(arrays)
    for array, expected in zip(back, arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("reference", "port", "alike", "expected"),
    [
        ((4, 3), (4, 3), False, Identity()),
        ((4, 3), (3, 4), False, Transpose((1, 0))),
        ((4, 3), (3, 4), True, None),
        ((1, 8, 1, 1), (8,), False, Reshape((1, 8, 1, 1), (8,))),
        ((1, 1, 8), (1, 8), False, Reshape((1, 1, 8), (1, 8))),
        ((4, 3, 5), (4, 3, 1, 5), True, Reshape((4, 3, 5), (4, 3, 1, 5))),
        ((4, 3, 1, 5), (4, 3, 5, 1), True, None),
        ((8, 3, 5, 5), (8, 5, 5, 3), True, Transpose((0, 2, 3, 1))),
        ((8, 3, 5, 7), (5, 7, 3, 8), False, Transpose((2, 3, 1, 0))),
        ((4, 3), (4, 2), False, None),
    ],
)
def test_transform_that_shapes_suggest(
    reference: Shape, port: Shape, alike: bool, expected: Transform | None
) -> None:
    found = transform_between(reference, port, same_library_kind=alike, same_name=False)
    assert found == expected


def test_equal_names_allow_a_plain_reshape() -> None:
    found = transform_between((6, 4), (2, 3, 4), same_library_kind=False, same_name=True)
    assert found == Reshape((6, 4), (2, 3, 4))
    assert transform_between((6, 4), (2, 3, 4), same_library_kind=False, same_name=False) is None


def test_chain_leaves_out_what_does_nothing() -> None:
    assert chain(Identity(), Identity()) == Identity()
    assert chain(Identity(), Transpose((1, 0))) == Transpose((1, 0))
    assert chain(Transpose((1, 0)), Split(0, (1, 2))) == Chain(
        (Transpose((1, 0)), Split(0, (1, 2)))
    )
