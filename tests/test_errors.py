"""Errors: two sentences, one tree."""

from __future__ import annotations

import pytest

from isograd import errors
from isograd.errors import IsogradError

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type)]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_has_one_base_and_says_what_and_what_to_do(kind: type[IsogradError]) -> None:
    assert issubclass(kind, IsogradError)
    error = kind("case.toml is empty.", "Write a case.")
    assert str(error) == "case.toml is empty. Write a case."
    assert (error.what, error.advice) == ("case.toml is empty.", "Write a case.")


def test_the_tree_in_the_docstring_is_complete() -> None:
    for kind in ALL:
        assert kind.__name__ in (errors.__doc__ or "")
