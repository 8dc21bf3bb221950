"""Inputs and targets that a callable of the user's returns, as values that cross the pipe."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from isograd.errors import CaseError
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import tensor_value


def batch_of(
    key: str, name: str, folder: str, seed: int, step: int
) -> tuple[list[Any], dict[str, Any]]:
    """Call the user's function for one step; positional and keyword arguments.

    A function with an argument gets the step, counted from 0.  numpy's global generator is seeded
    by seed and step before.  (args, kwargs) is taken as such where args is a list or a tuple and
    kwargs a dictionary with names; else a tuple holds positional arguments, a dictionary keyword
    arguments, and anything else is the one argument.
    """
    function = load_callable(name, folder, key)
    np.random.seed((seed * 1009 + step) % 2**32)  # noqa: NPY002 - the user's function draws from it
    with user_code(f"the callable {name} of {key}"):
        found = function(step) if _takes_a_step(function) else function()
    positional, keywords = _split(found)
    if keywords and key == "targets":
        raise CaseError(
            f"targets = {name!r} returned names",
            "Return a tuple: targets are passed to the loss by position.",
        )
    plain = [_plain(value, f"{key} {i}", name) for i, value in enumerate(positional)]
    return plain, {word: _plain(value, f"{key} {word}", name) for word, value in keywords.items()}


def _takes_a_step(function: Any) -> bool:
    """Whether the function needs an argument."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a function of C without a signature
        return False
    return False


def _split(found: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(found, tuple) and len(found) == 2:
        if isinstance(found[0], (tuple, list)) and _has_names(found[1]):
            return list(found[0]), dict(found[1])
    if isinstance(found, tuple):
        return list(found), {}
    if _has_names(found):
        return [], dict(found)
    return [found], {}


def _has_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and key.isidentifier() for key in value
    )


def _plain(value: Any, where: str, name: str) -> Any:
    """The value with numpy's arrays as tensors."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubc":
        return tensor_value(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        parts = [_plain(part, f"{where}.{i}", name) for i, part in enumerate(value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, Mapping):
        return {k: _plain(part, f"{where}.{k}", name) for k, part in value.items()}
    raise CaseError(
        f"{name} returned a {type(value).__name__} as {where}",
        "Return numpy arrays, strings, numbers, None, or lists, tuples and dictionaries of these.",
    )
