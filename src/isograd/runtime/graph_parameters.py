"""A network's parameters in functions that a static graph runs, too.

A graph runs no method that yields, and takes a Parameter of a list for a constant.  It reads an
attribute of a network, though, and a ParameterTuple that is found there is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253

from isograd.runtime.module_functions import named_parameters, parameters


def _tuple_of(cell: Any) -> Any:
    return ms.ParameterTuple(list(parameters(cell)))


def _names_of(cell: Any) -> tuple[str, ...]:
    return tuple(name for name, _ in named_parameters(cell))


class _Parameters(nn.Cell):  # type: ignore[misc]
    """What torch calls parameters; in a graph an attribute that all networks have then."""

    def __init__(self) -> None:
        super().__init__()
        nn.Cell.parameters_of_graph = property(_tuple_of)
        nn.Cell.names_of_graph = property(_names_of)

    def __call__(self, cell: Any) -> Iterator[Any]:
        return parameters(cell)

    def construct(self, cell: Any) -> Any:
        return cell.parameters_of_graph


class _NamedParameters(_Parameters):
    """What torch calls parameters, with their paths."""

    def __call__(self, cell: Any) -> Iterator[Any]:
        return named_parameters(cell)

    def construct(self, cell: Any) -> Any:
        pairs = zip(cell.names_of_graph, cell.parameters_of_graph)  # noqa: B905  # a graph takes no strict
        return [(name, parameter) for name, parameter in pairs]


_PARAMETERS = _Parameters()
_NAMED_PARAMETERS = _NamedParameters()


def parameters_in_graph(cell: Any) -> Any:
    """What torch calls parameters, also where a static graph runs."""
    return _PARAMETERS(cell)


def named_parameters_in_graph(cell: Any) -> Any:
    """What torch calls parameters, with their paths, also where a static graph runs."""
    return _NAMED_PARAMETERS(cell)
