"""Torch's functions computed with MindSpore's operators: `compute`.

By torch's names and argument names, with torch's semantics, exact in float32 and differentiable on
a CPU.  Where MindSpore's own operator is wrong or has no gradient there (bicubic, selu), or breaks
ties otherwise (max_pool), the function is composed of basic ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isograd.frameworks.mindspore.functions import (
    layers,
    losses,
    normal,
    pointwise,
    pooling,
    shapes,
)
from isograd.runtime.basics import cast

#: All that can be computed, by torch's names.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **pointwise.FUNCTIONS,
    **shapes.FUNCTIONS,
    **normal.FUNCTIONS,
    **layers.FUNCTIONS,
    **pooling.FUNCTIONS,
    **losses.FUNCTIONS,
}

#: Arguments of torch that do not change the result.
_IGNORED = frozenset("inplace _stacklevel size_average reduce memory_format out dropout_p".split())


def compute(function: str, arguments: dict[str, Any]) -> Any:
    """The result of one of torch's functions; arguments by torch's names.

    Raises KeyError for an unknown function, TypeError for an argument that it does not know.
    """
    given = {name: value for name, value in arguments.items() if name not in _IGNORED}
    if function not in ("to", "arange", "full") and "dtype" in given:
        dtype = given.pop("dtype")
        if dtype is not None:
            given["input"] = cast(given["input"], dtype)
    return FUNCTIONS[function](**given)
