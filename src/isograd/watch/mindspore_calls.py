"""What MindSpore calls when a network is differentiated, compiled or updated: where it is seen.

In PyNative mode `value_and_grad`, `grad` and TrainOneStepCell all pass through the executor's
`new_graph`, `end_graph` and `grad`; jit and GRAPH_MODE pass through `_JitExecutor` and
`Cell.compile_and_run`; optimizers are Cells.  These are replaced while a training is watched.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training
import numpy as np

from isograd import tree
from isograd.recording.mindspore_recorder import as_array
from isograd.watch.looks import Numbers

_MISSING = object()


class Replacements:
    """Attributes of classes that are replaced, and put back in the opposite order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set an attribute to what `make` returns for the present one; inherited ones too."""
        own = vars(owner).get(name, _MISSING)
        setattr(owner, name, make(getattr(owner, name)))
        if own is _MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, own))

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


@dataclass
class ForwardCall:
    """A function or Cell that is differentiated, or compiled and run, with what it was given.

    weights: with respect to which it was differentiated, None where it was compiled.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    where: str
    random: Any
    output: Any = None
    weights: Any = None
    has_aux: bool = False
    is_compiled: bool = False


def executor_class() -> Any:
    """The class through which PyNative mode differentiates."""
    return importlib.import_module("mindspore.graph.api")._PyNativeExecutor


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, parameters included."""
    return isinstance(value, mindspore.Tensor)


def floating(nested: Any) -> list[Any]:
    """All tensors in a nested value that can hold NaN."""
    return [t for t in tree.flatten(nested, is_tensor)[0] if is_floating(t)]


def is_floating(tensor: Any) -> bool:
    """Whether a tensor can hold NaN."""
    return str(tensor.dtype).lower().startswith(("float", "bfloat", "complex"))


def numbers_of(tensor: Any) -> Numbers | None:
    """A tensor's elements as float32 or float64, without a copy where that is possible.

    returns: the shape of the tensor; float32 for float16 and bfloat16, else its own dtype.
    """
    array, dtype = as_array(tensor)
    if array is None:
        return None
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def scalar_of(output: Any) -> float | None:
    """The first floating tensor with one element in an output: the loss."""
    for tensor in floating(output):
        values = numbers_of(tensor) if tensor.size == 1 else None
        if values is not None:
            return float(values.reshape(())[()].real)
    return None


def parameter_paths(root: Any, prefix: str = "") -> dict[int, str]:
    """Parameters of a Cell by identity, as paths of attributes."""
    found: dict[int, str] = {}
    for owner, cell in root.cells_and_names():
        for attribute, parameter in cell._params.items():
            if parameter is not None:
                path = ".".join(part for part in (prefix, owner, attribute) if part)
                found.setdefault(id(parameter), path)
    return found
