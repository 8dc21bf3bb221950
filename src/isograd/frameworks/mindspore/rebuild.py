"""A cell of the library with other constructor arguments, for the time of a block.

The new cell takes the place of the old one's `construct` and works on the old one's parameters, so
that gradients and state stay where they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from mindspore import ParameterTuple, nn

from isograd.errors import UserCodeError
from isograd.frameworks.base import PortFix
from isograd.frameworks.mindspore.construction import Construction, ConstructionLog, is_library
from isograd.frameworks.mindspore.observe import replaced_constructs

_ADVICE = "This is a fault of isograd's proposal, not of the port."


@contextlib.contextmanager
def rebuilt(
    cells: dict[str, nn.Cell], built: ConstructionLog, fixes: Sequence[PortFix]
) -> Iterator[None]:
    """Let library cells compute as if they had been built with these arguments.

    Raises UserCodeError where a cell cannot be built so, or would need other parameters.
    """
    changes: dict[str, dict[str, Any]] = {}
    for fix in fixes:
        if fix.kind == "rebuild":
            changes.setdefault(fix.module, {}).update(fix.arguments)
    new: dict[str, nn.Cell] = {}
    for name, changed in changes.items():
        if name not in cells:
            raise UserCodeError(f"the port has no cell {name!r} to build again", _ADVICE)
        new[name] = _build(name, cells[name], built.of(cells[name]), changed)

    def delegate(name: str, old: nn.Cell) -> Callable[..., Any]:
        def construct(*args: Any, **kwargs: Any) -> Any:
            _set_modes(old, new[name])
            return new[name].construct(*args, **kwargs)

        return construct

    with replaced_constructs({name: cells[name] for name in new}, delegate):
        yield


def _build(
    name: str, old: nn.Cell, construction: Construction, changed: Mapping[str, Any]
) -> nn.Cell:
    kind = type(old).__name__
    if construction.given is None or not is_library(old):
        what = f"{name} ({kind}) cannot be built again: its arguments are not known"
        raise UserCodeError(what, _ADVICE)
    arguments = {**construction.given, **{k: _as_given(v) for k, v in changed.items()}}
    changes = ", ".join(f"{k}={v!r}" for k, v in changed.items())
    with _no_trace(arguments.values()):
        try:
            new = construction.kind(**arguments)
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            raise UserCodeError(
                f"{name} ({kind}) cannot be built with {changes}: {said}", _ADVICE
            ) from error
        _share(name, changes, old, new)
    return new


def _as_given(value: Any) -> Any:
    """The pipe makes no difference between a list and a tuple; MindSpore takes tuples."""
    return tuple(value) if isinstance(value, list) else value


@contextlib.contextmanager
def _no_trace(arguments: Any) -> Iterator[None]:
    """Building a cell draws numbers, and renames the parameters of cells that it is given."""
    cells = [value for value in arguments if isinstance(value, nn.Cell)]
    given = [parameter for cell in cells for parameter in cell.get_parameters()]
    names = [parameter.name for parameter in given]
    state = np.random.get_state()  # noqa: NPY002 - it is MindSpore that draws from it
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002 - the same
        for parameter, before in zip(given, names, strict=True):
            parameter.name = before


def _share(name: str, changes: str, old: nn.Cell, new: nn.Cell) -> None:
    """Put the old cell's parameters into the new one, attribute by attribute."""
    theirs = dict(old.cells_and_names())
    swapped: dict[int, Any] = {}
    for path, cell in new.cells_and_names():
        source = theirs.get(path)
        for place in ("_params", "_buffers"):
            for attribute, tensor in list((getattr(cell, place, None) or {}).items()):
                if tensor is None:
                    continue
                own = (getattr(source, place, None) or {}).get(attribute)
                if own is None or tuple(own.shape) != tuple(tensor.shape):
                    raise UserCodeError(
                        f"{name} ({type(old).__name__}) with {changes} needs another {attribute}",
                        "Change the cell and its parameters in the port.",
                    )
                getattr(cell, place)[attribute] = own
                swapped[id(tensor)] = own
    for _, cell in new.cells_and_names():
        for attribute, value in list(vars(cell).items()):
            if isinstance(value, ParameterTuple):
                own = ParameterTuple([swapped.get(id(p), p) for p in value])
                object.__setattr__(cell, attribute, own)


def _set_modes(old: nn.Cell, new: nn.Cell) -> None:
    """Training or not, as the old cell is right now."""
    theirs = dict(old.cells_and_names())
    for path, cell in new.cells_and_names():
        cell.training = theirs.get(path, old).training
        cell._phase = old._phase
