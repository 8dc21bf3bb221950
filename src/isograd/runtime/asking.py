"""Methods of torch's modules and tensors that a program asks for by their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from isograd.runtime.resetting import can_reset, reset_parameters


def has_member(owner: Any, name: str, kinds: Any) -> bool:
    """`hasattr(owner, name)` of a name that in torch all objects of these kinds have.

    owner: an object, or a class.
    """
    is_one = issubclass(owner, kinds) if isinstance(owner, type) else isinstance(owner, kinds)
    return is_one or hasattr(owner, name)


def method_of(
    owner: Any, name: str, kinds: Any, function: Callable[..., Any], *default: Any
) -> Any:
    """`getattr(owner, name)`; of these kinds that lack it, the function that does the same."""
    if isinstance(owner, kinds) and not hasattr(owner, name):
        return functools.partial(function, owner)
    return getattr(owner, name, *default)


def reset_method(owner: Any, *default: Any) -> Any:
    """`getattr(owner, "reset_parameters")`, also of MindSpore's layers."""
    if can_reset(owner):
        return functools.partial(reset_parameters, owner)
    return getattr(owner, "reset_parameters", *default)
