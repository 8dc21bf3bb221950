"""Networks called with other parameters than their own, as torch.func does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.module_functions import (
    is_constant,
    is_statistic,
    named_buffers,
    named_modules,
    named_parameters,
    torchs_name,
)
from isograd.runtime.writing import write

#: A cell, and what it calls one of its parameters or buffers.
Place = tuple[Any, str]


def _places(cell: Any) -> dict[str, Place]:
    """Each parameter's and buffer's place by its path, by torch's name and by MindSpore's."""
    found: dict[str, Place] = {}
    for path, part in named_modules(cell, remove_duplicate=False):
        for name, value in (*part._params.items(), *part._buffers.items()):
            if value is not None and not is_constant(part, name):
                for spelled in (name, torchs_name(part, name)):
                    found[f"{path}.{spelled}" if path else spelled] = (part, name)
    return found


def _held(place: Place) -> Any:
    part, name = place
    return part._buffers[name] if name in part._buffers else part._params[name]


def _merged(dicts: Any) -> dict[str, Any]:
    several = [dicts] if isinstance(dicts, Mapping) else list(dicts)
    found: dict[str, Any] = {}
    for part in several:
        if repeated := sorted(found.keys() & part.keys()):
            raise ValueError(f"{repeated} appeared in multiple dictionaries")
        found.update(part)
    return found


def _checked(given: Mapping[str, Any], cell: Any, places: Mapping[str, Place]) -> None:
    names = {name for name, _ in (*named_parameters(cell), *named_buffers(cell))}
    missing = sorted(name for name in names if name not in given)
    unexpected = sorted(name for name in given if name not in places)
    if missing or unexpected:
        raise RuntimeError(f"Missing key(s): {missing}. Unexpected key(s): {unexpected}.")


def _chosen(given: Mapping[str, Any], places: Mapping[str, Place]) -> dict[int, Any]:
    """The given values by what they replace; what is tied is replaced in all of its places."""
    found: dict[int, Any] = {}
    for key in given.keys() & places.keys():
        if found.setdefault(id(_held(places[key])), given[key]) is not given[key]:
            raise ValueError(f"functional_call got several values for {key}, which is tied")
    return found


class _Swapped:
    """Cells that compute with other values for a while.

    An attribute of its own hides a Parameter, which stays where it is: MindSpore reads more of what
    it holds as Parameters than a tensor has.
    """

    def __init__(self) -> None:
        self._hidden: list[tuple[dict[str, Any], str, Any]] = []
        self._statistics: list[tuple[Any, Any]] = []
        self._values: dict[int, Any] = {}

    def _hide(self, holder: dict[str, Any], name: str, value: Any) -> None:
        self._hidden.append((holder, name, holder.get(name)))
        holder[name] = value

    def put(self, place: Place, value: Any) -> None:
        """One value in the place of a parameter or a buffer."""
        part, name = place
        own = _held(place)
        if name in part._buffers:
            self._hide(part._buffers, name, value)
            return
        if is_statistic(name, own):
            held = ms.Parameter(value.copy(), own.name, requires_grad=False)
            self._statistics.append((value, held))
            value = held
        self._values[id(own)] = value
        self._hide(part.__dict__, name, value)

    def put_into_lists(self, cell: Any) -> None:
        """The values in the lists of Parameters that cells hold, as MindSpore's LSTM does."""
        for _, part in named_modules(cell):
            for name, several in [*part.__dict__.items(), *part._params_list.items()]:
                listed = isinstance(several, (tuple, list))
                if listed and any(id(parameter) in self._values for parameter in several):
                    shown = [self._values.get(id(parameter), parameter) for parameter in several]
                    self._hide(part.__dict__, name, tuple(shown))

    def undo(self) -> None:
        """The cells' own values again; statistics that were moved are written into the given."""
        for holder, name, before in reversed(self._hidden):
            if before is None:
                holder.pop(name, None)
            else:
                holder[name] = before
        for value, held in self._statistics:
            write(value, held)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The network's result with these values in the places of its own, which stay as they are.

    Gradients go to the values.  Statistics that a norm moves are written into the given tensors;
    a buffer that the network sets anew is not, which torch puts into the dictionary.
    """
    given, places = _merged(parameter_and_buffer_dicts), _places(module)
    if strict:
        _checked(given, module, places)
    chosen = _chosen(given, places) if tie_weights else {}
    swapped, seen = _Swapped(), set()
    inputs = args if isinstance(args, tuple) else () if args is None else (args,)
    try:
        for key, (part, name) in places.items():
            value = chosen.get(id(_held((part, name)))) if tie_weights else given.get(key)
            if value is not None and (id(part), name) not in seen:
                seen.add((id(part), name))
                swapped.put((part, name), value)
        swapped.put_into_lists(module)
        return module(*inputs, **(kwargs or {}))
    finally:
        swapped.undo()


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, as new ones, and the buffers of networks of one class, side by side."""
    several = list(models)
    if not several:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(model.training) for model in several}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same mode.")
    if len({type(model) for model in several}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = (
        {
            name: ops.stack([dict(named(model))[name] for model in several])
            for name, _ in named(several[0])
        }
        for named in (named_parameters, named_buffers)
    )
    learnt = {
        name: ms.Parameter(ms.Tensor(value.asnumpy()), name=name.replace(".", "_"))
        for name, value in parameters.items()
    }
    return learnt, buffers
