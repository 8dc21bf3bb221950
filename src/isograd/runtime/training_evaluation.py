"""Networks that compiled steps train are compiled where they are evaluated, too."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253

from isograd.runtime.training_constants import Constants
from isograd.runtime.training_scaling import STEPPED

#: So many shapes of a network's inputs are compiled, and so often for other constants; each takes
#: a compilation of its own.
_MOST_SHAPES = 4
#: What MindSpore's compiler raises where it refuses a network.
_REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError, NameError)
#: By the identity of networks, which live on in them.
_EVALUATIONS: dict[int, Evaluation] = {}


def evaluated(network: Any) -> Any:
    """What calls a network in evaluation: compiled where a compiled step trains it, else itself.

    Also itself where any of its cells is in training: it may draw, and keep statistics.
    """
    if id(network) not in STEPPED:
        return network
    if any(cell.training for _, cell in network.cells_and_names()):
        return network
    if id(network) not in _EVALUATIONS:
        _EVALUATIONS[id(network)] = Evaluation(network)
    return _EVALUATIONS[id(network)]


class Evaluation:
    """A network's call: from the second of a shape that follows on one of the same, compiled.

    Eagerly stays what is not given tensors alone, returns other than tensors in plain containers,
    has more shapes than a few, or is refused by the compiler; and a shape that comes once, as in
    a text that grows.
    """

    def __init__(self, network: Any) -> None:
        self.network, self.is_compiled = network, True
        self.last: Any = None
        self.times = 0
        self._begin()

    def _begin(self) -> None:
        """Compile nothing yet, and all that follows with the constants that are there now."""
        self.shapes: set[Any] = set()
        self.constants = Constants((self.network,))
        network = self.network

        def forward(*given: Any) -> Any:
            return network(*given)

        self.forward = ms.jit(forward)

    def __call__(self, *given: Any) -> Any:
        if not self.is_compiled or not all(isinstance(one, ms.Tensor) for one in given):
            return self.network(*given)
        if self.constants.changed():
            self.times += 1
            self.is_compiled = self.times < _MOST_SHAPES
            self._begin()
        shape = tuple((one.shape, one.dtype) for one in given)
        if shape == self.last and len(self.shapes) < _MOST_SHAPES:
            self.shapes.add(shape)
        self.last = shape
        if shape in self.shapes:
            try:
                return self.forward(*given)
            except _REFUSALS:
                self.is_compiled = False
                return self.network(*given)
        result = self.network(*given)
        self.is_compiled = _is_plain(result)
        return result


def _is_plain(result: Any) -> bool:
    """Whether a graph returns this as it is: tensors, also in tuples, lists and dictionaries."""
    if type(result) in (tuple, list):
        return all(map(_is_plain, result))
    if type(result) is dict:
        return all(map(_is_plain, result.values()))
    return isinstance(result, ms.Tensor)
