"""What torch's state dicts do for any cell: values by path, under torch's or MindSpore's names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from mindspore import nn  # noqa: TID253

from isograd.runtime.module_functions import TWINS, is_constant, named_modules
from isograd.runtime.writing import write


def load_state_dict(cell: Any, state_dict: Any, *settings: Any, **named: Any) -> Any:
    """Copy values by path into a cell; a method of its own, or of any other object, is called."""
    method = cell.load_state_dict
    if getattr(method, "__func__", None) is not nn.Cell.load_state_dict:
        return method(state_dict, *settings, **named)
    return load_values(method.__self__, state_dict, *settings, **named)  # which `super()` has, too


def load_values(cell: Any, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
    """Copy values by path; norms here do not count their batches, so that may be left over."""
    paths = (f"{path}.num_batches_tracked".lstrip(".") for path, _ in named_modules(cell))
    left = set(paths) - set(cell.state_dict())
    values = OrderedDict((key, v) for key, v in state_dict.items() if key not in left)
    found = _by_own_names(cell, values)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    for path, part in named_modules(cell, remove_duplicate=False):
        prefix = f"{path}." if path else ""
        given: Any = (found, prefix, {}, True, missing, unexpected, errors)
        if type(part)._load_from_state_dict is nn.Cell._load_from_state_dict:
            load_own(part, *given)
        else:
            part._load_from_state_dict(*given)
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
    kept = (n for n in cell._buffers if n not in cell._non_persistent_buffers_set)
    own = {**cell._params, **{name: cell._buffers[name] for name in kept}}
    own = {name: value for name, value in own.items() if not is_constant(cell, name)}
    own = {f"{prefix}{name}": value for name, value in own.items() if value is not None}
    for key, target in own.items():
        value = state_dict.get(key)
        if value is None:
            missing_keys += [key] if strict else []
        elif tuple(value.shape) != tuple(target.shape):
            shapes = f"{tuple(value.shape)} in the checkpoint, {tuple(target.shape)} in the model"
            error_msgs.append(f"size mismatch for {key}: {shapes}.")
        else:
            write(target, value)
    for key in state_dict:
        if strict and key.startswith(prefix):
            child, dot, _ = key[len(prefix) :].partition(".")
            if (child not in cell._cells) if dot else (key not in own):
                unexpected_keys.append(key)


def _by_own_names(cell: Any, values: Mapping[str, Any]) -> Any:
    """Values under the cell's names, whether they bear torch's or MindSpore's for its layers."""
    own, found = cell.state_dict(), OrderedDict()
    for key, value in values.items():
        path, _, name = key.rpartition(".")
        twins = [f"{path}.{twin}".lstrip(".") for twin in TWINS.get(name, ())]
        free = [twin for twin in twins if twin in own and twin not in values]
        chosen = free[0] if key not in own and free else key
        wanted = own[chosen].shape if chosen in own else value.shape
        is_same = [n for n in value.shape if n != 1] == [n for n in wanted if n != 1]
        found[chosen] = value.reshape(wanted) if is_same and value.shape != wanted else value
    return found
