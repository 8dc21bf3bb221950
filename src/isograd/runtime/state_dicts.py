"""What torch's state dicts do for any cell: values by path, under torch's or MindSpore's names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.module_functions import (
    TWINS,
    in_torchs_order,
    is_constant,
    is_statistic,
    named_modules,
    torchs_name,
)

COUNT = "num_batches_tracked"


class StateDict(OrderedDict[str, Any]):
    """Values by torch's names; what MindSpore's layers call them finds the same entry.

    Checkpoints of MindSpore, which programs compare with it and put into it, have those names.
    """

    twins: dict[str, str]

    def __init__(self, *given: Any) -> None:
        self.twins = dict(getattr(given[0], "twins", {})) if given else {}
        super().__init__(*given)

    def torchs(self, key: Any) -> Any:
        """The name of an entry; what MindSpore calls it may be given."""
        return self.twins.get(key, key)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.torchs(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self.torchs(key), value)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(self.torchs(key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self.torchs(key))

    def get(self, key: Any, default: Any = None) -> Any:
        """An entry, or what is given for one that is missing."""
        return super().get(self.torchs(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Take an entry out."""
        return super().pop(self.torchs(key), *default)


def state_dict(cell: Any, *settings: Any, **named: Any) -> Any:
    """A cell's values by torch's names; a method of its own, or of another object, is called.

    The values are the Parameters and buffers themselves.  Norms of MindSpore's count no batches:
    num_batches_tracked is 0.
    """
    method = cell.state_dict
    if getattr(method, "__func__", None) is not nn.Cell.state_dict:
        return method(*settings, **named)
    return _state_of(method.__self__, *settings, **named)  # which `super()` has, too


def _state_of(cell: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
    if destination is None:
        destination = StateDict()
        destination._metadata = OrderedDict()
    for before in cell._state_dict_pre_hooks.values():
        before(cell, prefix, keep_vars)
    own = own_state(cell)
    if isinstance(destination, StateDict):
        destination.twins |= {f"{prefix}{name}": f"{prefix}{key}" for key, name, _ in own}
    if type(cell)._save_to_state_dict is nn.Cell._save_to_state_dict:
        destination.update((f"{prefix}{key}", value) for key, _, value in own)
    else:
        cell._save_to_state_dict(destination, prefix, keep_vars)
    if type(cell).get_extra_state is not nn.Cell.get_extra_state:
        destination[f"{prefix}_extra_state"] = cell.get_extra_state()
    for name, child in cell._cells.items():
        if child is not None:
            path = f"{prefix}{name}."
            state_dict(child, destination=destination, prefix=path, keep_vars=keep_vars)
    for after in cell._state_dict_hooks.values():
        after(cell, destination, prefix, {})
    return destination


def own_state(cell: Any) -> list[tuple[str, str, Any]]:
    """A cell's own lasting values in torch's order, with torch's names and MindSpore's."""
    held = [
        (name, value)
        for name, value in in_torchs_order(cell)
        if value is not None and not is_constant(cell, name)
    ]
    learned = [pair for pair in held if not is_statistic(*pair)]
    kept = [pair for pair in held if is_statistic(*pair)]
    lasting = cell._buffers.items()
    kept += [
        (name, value)
        for name, value in lasting
        if value is not None and name not in cell._non_persistent_buffers_set
    ]
    found = [(torchs_name(cell, name), name, value) for name, value in (*learned, *kept)]
    if _counts_in_torch(cell):
        found.append((COUNT, COUNT, ms.Tensor(0, ms.int64)))
    return found


def _counts_in_torch(cell: Any) -> bool:
    """Whether torch's norm counts its batches and this one does not."""
    if isinstance(cell, (nn.BatchNorm1d, nn.BatchNorm2d)) and "moving_mean" in cell._params:
        return True
    return "running_mean" in cell._params and getattr(cell, COUNT, 0) is None


def load_state_dict(cell: Any, state_dict: Any, *settings: Any, **named: Any) -> Any:
    """Copy values by path into a cell; a method of its own, or of any other object, is called."""
    method = cell.load_state_dict
    if getattr(method, "__func__", None) is not nn.Cell.load_state_dict:
        return method(state_dict, *settings, **named)
    return load_values(method.__self__, state_dict, *settings, **named)  # which `super()` has, too


def load_values(cell: Any, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
    """Copy values by path; norms here do not count their batches, so that may be left over."""
    parts = list(named_modules(cell, remove_duplicate=False))
    parts = [(f"{path}." if path else "", part) for path, part in parts]
    torchs = {f"{at}{n}": f"{at}{torchs_name(part, n)}" for at, part in parts for n in kept(part)}
    found = _by_own_names(torchs, state_dict)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    for prefix, part in parts:
        _without_foreign(found, prefix, part)
        given: Any = (found, prefix, {}, True, missing, unexpected, errors)
        if type(part)._load_from_state_dict is nn.Cell._load_from_state_dict:
            load_own(part, *given)
        else:
            part._load_from_state_dict(*given)
    missing = [torchs.get(key, key) for key in missing]
    if strict and unexpected:
        errors.insert(0, f"Unexpected key(s) in state_dict: {', '.join(unexpected)}. ")
    if strict and missing:
        errors.insert(0, f"Missing key(s) in state_dict: {', '.join(missing)}. ")
    if errors:
        name, text = type(cell).__name__, "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t{text}")
    return IncompatibleKeys(missing, unexpected)


class IncompatibleKeys(NamedTuple):
    """What load_state_dict did not find, and what it did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"_IncompatibleKeys({self.missing_keys}, {self.unexpected_keys})"
        return "<All keys matched successfully>"


def load_own(
    cell: Any,
    state_dict: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Copy the values of one cell's own parameters and lasting buffers.

    By copy_: after set_data an optimizer that has stepped leaves a Parameter as it is.
    """
    rest = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    for hook in cell._load_state_dict_pre_hooks.values():
        hook(cell, *rest)
    own = {f"{prefix}{name}": value for name, value in kept(cell).items()}
    for key, target in own.items():
        value = state_dict.get(key)
        if value is None:
            missing_keys += [key] if strict else []
        elif fitting(value, target).shape != target.shape:
            shapes = f"{tuple(value.shape)} in the checkpoint, {tuple(target.shape)} in the model"
            error_msgs.append(f"size mismatch for {key}: {shapes}.")
        else:
            new = fitting(value, target).astype(target.dtype)
            if getattr(cell, "compiled_as", 0) == id(cell) and not isinstance(target, ms.Parameter):
                _require_same(key, target, new)
            _copy_into(target, new)
    extra = f"{prefix}_extra_state"
    has_extra = type(cell).set_extra_state is not nn.Cell.set_extra_state
    if has_extra and extra in state_dict:
        cell.set_extra_state(state_dict[extra])
    elif has_extra and strict:
        missing_keys.append(extra)
    for key in state_dict:
        if strict and key.startswith(prefix) and not (has_extra and key == extra):
            child, dot, _ = key[len(prefix) :].partition(".")
            if (child not in cell._cells) if dot else (key not in own):
                unexpected_keys.append(key)


def _require_same(name: str, target: Any, new: Any) -> None:
    """Refuse other values of a buffer whose first ones a compiled step may not read at all.

    MindSpore's compiler (2.10) leaves out a product with ones and a sum with zeros.
    """
    is_left_out = bool((target == 0).all()) or bool((target == 1).all())
    if is_left_out and not bool((target == new).all()):
        raise RuntimeError(
            f"{name} changes, and a compiled step has its first value; convert with --eager"
        )


def _copy_into(target: Any, values: Any) -> None:
    """Copy values into a Parameter or a buffer, which may be a part of another tensor."""
    with api._no_grad():
        if target.parent_tensor_ is None:
            target.copy_(values)
        else:
            target[...] = values


def fitting(value: Any, target: Any) -> Any:
    """A value in a target's shape where only axes of one differ: MindSpore's Conv1d has one."""
    sizes = [n for n in value.shape if n != 1], [n for n in target.shape if n != 1]
    return value.reshape(target.shape) if sizes[0] == sizes[1] else value


def kept(cell: Any) -> dict[str, Any]:
    """A cell's own Parameters and lasting buffers that torch's layer has, too."""
    buffers = cell._buffers.items()
    own = {
        **cell._params,
        **{n: b for n, b in buffers if n not in cell._non_persistent_buffers_set},
    }
    return {n: v for n, v in own.items() if v is not None and not is_constant(cell, n)}


def _by_own_names(torchs: dict[str, str], values: Mapping[str, Any]) -> Any:
    """Values under the cell's names, whether they bear torch's or MindSpore's for its layers.

    torch's is the program's own where both are there.
    """
    found = OrderedDict(values.items())
    for name, key in torchs.items():
        path, dot, last = name.rpartition(".")
        others = [] if name in found else [f"{path}{dot}{twin}" for twin in TWINS.get(last, ())]
        for other in (key, *others):
            if other in found and other not in torchs:
                found[name] = found.pop(other)
                break
    return found


def _without_foreign(found: Any, prefix: str, cell: Any) -> None:
    """Leave out what only torch's norm has (its count), or only MindSpore's (constants)."""
    for name in (COUNT, *cell._params):
        if is_constant(cell, name) or (name == COUNT and name not in kept(cell)):
            found.pop(f"{prefix}{name}", None)
