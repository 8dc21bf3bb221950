"""With which arguments, and where, the cells of a network were built.

Only the cells that the library brings are built again later (see `rebuild`), but every cell is
noted: at the time of `__new__` nobody knows yet which of them the network keeps.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindspore import nn

from isograd.frameworks.common import building_place, plain_of

#: Cells of the library that hold other cells and compute nothing of their own.
CONTAINERS = tuple(
    kind
    for name in (
        "SequentialCell CellList CellDict MultiheadAttention TransformerEncoderLayer "
        "TransformerDecoderLayer TransformerEncoder TransformerDecoder Transformer WithLossCell"
    ).split()
    for kind in [getattr(nn, name, None)]
    if kind is not None
)

#: Arguments that a constructor takes out of its ``**kwargs``, with their defaults.
_EXTRA: dict[type[nn.Cell], dict[str, Any]] = {nn.RNN: {"nonlinearity": "tanh"}}


@dataclass(frozen=True)
class Construction:
    """How one cell was built.

    given: what its constructor was given, by name; None where that is not known; arguments: the
    same with the defaults.  place: path and line of the user's code that builds it.
    """

    kind: type[nn.Cell]
    given: dict[str, Any] | None
    arguments: dict[str, Any]
    place: tuple[str, int] | None

    @property
    def where(self) -> str | None:
        """``file:line``, without folders."""
        return f"{Path(self.place[0]).name}:{self.place[1]}" if self.place else None

    @property
    def plain_arguments(self) -> dict[str, Any]:
        """The arguments that are numbers, words, truth values, None, or tuples of them."""
        return plain_of(self.arguments)


def is_library(cell: Any) -> bool:
    """Whether a cell's class belongs to MindSpore and not to the user."""
    return type(cell).__module__.startswith("mindspore.")


class ConstructionLog:
    """Notes how cells are built; `of` finds it again."""

    def __init__(self) -> None:
        self._given: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self._places: dict[int, tuple[str, int] | None] = {}
        self._copied: nn.Cell | None = None

    def of(self, cell: nn.Cell) -> Construction:
        """How this cell was built."""
        noted = self._given.get(id(cell))
        place = self._places.get(id(cell))
        given = _by_name(type(cell), *noted) if noted is not None and is_library(cell) else None
        if given is None:
            return Construction(type(cell), None, {}, place)
        return Construction(type(cell), given, {**_defaults(type(cell)), **given}, place)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note every cell that is built until the end of the block."""
        new, start = nn.Cell.__dict__["__new__"], nn.Cell.__init__
        make, given, places = nn.Cell.__new__, self._given, self._places

        def noting_new(kind: Any, /, *args: Any, **kwargs: Any) -> Any:
            cell = make(kind, *args, **kwargs)
            source, self._copied = self._copied, None
            places.pop(id(cell), None)
            if type(source) is kind and not args and not kwargs:
                # A copy is never initialised: it was built as, and where, its original was.
                given.pop(id(cell), None)
                if id(source) in given:
                    given[id(cell)] = given[id(source)]
                places[id(cell)] = places.get(id(source))
            else:
                given[id(cell)] = args, kwargs
            return cell

        def noting_start(cell: Any, /, *args: Any, **kwargs: Any) -> None:
            places[id(cell)] = building_place(cell)
            start(cell, *args, **kwargs)

        def noting_copy(cell: Any, protocol: Any) -> Any:
            found = object.__reduce_ex__(cell, protocol)
            self._copied = cell
            return found

        nn.Cell.__new__ = noting_new
        nn.Cell.__init__ = noting_start
        nn.Cell.__reduce_ex__ = noting_copy
        try:
            yield
        finally:
            nn.Cell.__new__, nn.Cell.__init__ = new, start
            del nn.Cell.__reduce_ex__


def signature_of(kind: type[nn.Cell]) -> inspect.Signature | None:
    """The signature of a class's constructor without its first parameter, if it has its own."""
    dropped = 1
    for owner in kind.__mro__[: kind.__mro__.index(nn.Cell)]:
        if "__init__" not in vars(owner):
            continue
        parameters = list(inspect.signature(vars(owner)["__init__"]).parameters.values())[dropped:]
        if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return inspect.Signature(parameters)
        dropped = 2  # nn.LSTM, GRU and RNN hand everything on, after the name of their mode
    return None


def _by_name(
    kind: type[nn.Cell], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    signature = signature_of(kind)
    if signature is None:
        return None
    extra = {name: kwargs[name] for name in _EXTRA.get(kind, {}) if name in kwargs}
    rest = {name: value for name, value in kwargs.items() if name not in extra}
    try:
        return {**signature.bind(*args, **rest).arguments, **extra}
    except TypeError:
        return None


def _defaults(kind: type[nn.Cell]) -> dict[str, Any]:
    signature = signature_of(kind)
    own = signature.parameters.values() if signature is not None else ()
    return {p.name: p.default for p in own if p.default is not p.empty} | _EXTRA.get(kind, {})
