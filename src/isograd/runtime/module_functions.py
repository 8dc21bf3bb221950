"""What torch.nn.Module's methods do, for any cell: MindSpore's own and torch-shaped ones."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.writing import write

#: Statistics that MindSpore keeps as Parameters and torch as buffers.
STATISTICS = frozenset(
    "running_mean running_var moving_mean moving_variance num_batches_tracked".split()
)
FLOATS = (ms.float16, ms.bfloat16, ms.float32, ms.float64)


def is_statistic(name: str, parameter: Any) -> bool:
    """Whether a Parameter of a norm is a buffer in torch."""
    return name in STATISTICS and not parameter.requires_grad


def is_constant(cell: Any, name: str) -> bool:
    """Whether torch's norm has no such parameter (affine=False); an optimizer would decay it."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm)
    without = isinstance(cell, norms) and not getattr(cell, "affine", True)
    return without and name in ("gamma", "beta")


def named_children(cell: Any) -> Iterator[tuple[str, Any]]:
    """The cells right below one with their names, each once."""
    if not isinstance(cell, nn.Cell):
        return iter(cell.named_children())  # anything with torch's method
    found = {id(child): (name, child) for name, child in reversed(cell._cells.items())}
    return (pair for pair in list(found.values())[::-1] if pair[1] is not None)


def children(cell: Any) -> Iterator[Any]:
    """The cells right below one, each once."""
    if not isinstance(cell, nn.Cell):
        return cell.children()  # type: ignore[no-any-return]  # has torch's method
    return (child for _, child in named_children(cell))


@ops.constexpr  # type: ignore[untyped-decorator]  # MindSpore's has no types
def children_to_apply(cell: Any) -> tuple[Any, ...]:
    """The cells right below one, for a loop that calls them: no graph runs `cells()`."""
    return tuple(child for _, child in named_children(cell))


@ops.constexpr  # type: ignore[untyped-decorator]  # the same
def named_children_to_apply(cell: Any) -> tuple[tuple[str, Any], ...]:
    """The cells right below one with their names, for a loop that calls them."""
    return tuple(named_children(cell))


def named_modules(
    cell: Any, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """A cell and all below it with their paths."""
    memo = set() if memo is None else memo
    if cell in memo:
        return
    if remove_duplicate:
        memo.add(cell)
    yield prefix, cell
    for name, child in cell._cells.items():
        if child is not None:
            path = f"{prefix}.{name}" if prefix else name
            yield from named_modules(child, memo, path, remove_duplicate)


def modules(cell: Any) -> Iterator[Any]:
    """A cell and all below it, each once."""
    if not isinstance(cell, nn.Cell):
        return cell.modules()  # type: ignore[no-any-return]  # has torch's method
    return (part for _, part in named_modules(cell))


def named_parameters(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """What torch calls parameters, with their paths."""
    if not isinstance(cell, nn.Cell):
        return cell.named_parameters(prefix, recurse)  # type: ignore[no-any-return]  # has torch's method
    found = (
        (path, torchs_name(part, name), parameter)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, parameter in part._params.items()
        if parameter is not None and not is_statistic(name, parameter)
        if not is_constant(part, name)
    )
    return _once(found, remove_duplicate)


def torchs_name(cell: Any, name: str) -> str:
    """What torch calls a Parameter of one of MindSpore's layers."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm)
    if not isinstance(cell, (*norms, nn.Embedding, nn.PReLU)):
        return name
    return _TWINS.get(name, (name,))[0] if name in _NATIVE_NAMES else name


def parameters(cell: Any, recurse: bool = True) -> Iterator[Any]:
    """What torch calls parameters."""
    if not isinstance(cell, nn.Cell):
        return cell.parameters()  # type: ignore[no-any-return]  # has torch's method
    return (parameter for _, parameter in named_parameters(cell, recurse=recurse))


def named_buffers(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """Buffers and running statistics with their paths."""
    found = (
        (path, torchs_name(part, name), value)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, value in (*part._params.items(), *part._buffers.items())
        if value is not None and (name in part._buffers or is_statistic(name, value))
    )
    return _once(found, remove_duplicate)


def buffers(cell: Any, recurse: bool = True) -> Iterator[Any]:
    """Buffers and running statistics."""
    return (buffer for _, buffer in named_buffers(cell, recurse=recurse))


def _parts(cell: Any, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
    return named_modules(cell, None, prefix, once) if recurse else iter([(prefix, cell)])


def _once(found: Any, once: bool) -> Iterator[tuple[str, Any]]:
    seen = set()
    for path, name, value in found:
        if id(value) in seen:
            continue
        if once:
            seen.add(id(value))
        yield (f"{path}.{name}" if path else name), value


def get_submodule(cell: Any, target: str) -> Any:
    """The cell at a path.  Raises AttributeError where there is none."""
    for name in filter(None, target.split(".")):
        if name not in cell._cells:
            raise AttributeError(f"{type(cell).__name__} has no attribute `{name}`")
        cell = cell._cells[name]
    return cell


def get_parameter(cell: Any, target: str) -> Any:
    """The Parameter at a path.  Raises AttributeError where there is none."""
    path, _, name = target.rpartition(".")
    owner = get_submodule(cell, path)
    if name not in owner._params:
        raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
    return owner._params[name]


def legal_name(path: str) -> str:
    """A path as a Parameter may have it: MindSpore 2.10 refuses what torch does not (`conv:0`)."""
    return re.sub(r"[^0-9a-zA-Z_.\-]", "_", path)


def add_module(cell: Any, name: str, module: Any) -> None:
    """A child by its name, its parameters named by their path.

    A SequentialCell runs what its constructor and `append` got; torch's runs all of its children.
    """
    cell.insert_child_to_cell(name, module)
    if isinstance(cell, nn.SequentialCell):
        cell.cell_list = [child for child in cell._cells.values() if child is not None]
    if module is not None:
        module.update_parameters_name(legal_name(f"{getattr(cell, '_place', '')}{name}."))


def requires_grad_(cell: Any, requires_grad: bool = True) -> Any:
    """Whether the parameters learn; the cell itself."""
    for parameter in parameters(cell):
        parameter.requires_grad = requires_grad
    return cell


def load_state_dict(cell: Any, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
    """Copy values by path; norms here do not count their batches, so that may be left over."""
    if not isinstance(cell, nn.Cell):
        return cell.load_state_dict(state_dict)  # it may be anything with torch's method
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
        twins = [f"{path}.{twin}".lstrip(".") for twin in _TWINS.get(name, ())]
        free = [twin for twin in twins if twin in own and twin not in values]
        chosen = free[0] if key not in own and free else key
        wanted = own[chosen].shape if chosen in own else value.shape
        is_same = [n for n in value.shape if n != 1] == [n for n in wanted if n != 1]
        found[chosen] = value.reshape(wanted) if is_same and value.shape != wanted else value
    return found


_NATIVE_NAMES = frozenset("gamma beta moving_mean moving_variance embedding_table w".split())
#: What torch and MindSpore call the same parameter of a layer.
_TWINS = {
    "gamma": ("weight",),
    "beta": ("bias",),
    "moving_mean": ("running_mean",),
    "moving_variance": ("running_var",),
    "embedding_table": ("weight",),
    "w": ("weight",),
    "weight": ("gamma", "embedding_table", "w"),
    "bias": ("beta",),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}


def floats_to(cell: Any, dtype: Any) -> Any:
    """All parameters and buffers of floats to a dtype; the cell itself."""
    for part in modules(cell):
        for parameter in part._params.values():
            if parameter is not None and parameter.dtype in FLOATS:
                parameter.set_dtype(dtype)
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer.dtype in FLOATS:
                part._buffers[name] = buffer.astype(dtype)
    return cell


def module_to(cell: Any, *args: Any, **kwargs: Any) -> Any:
    """To the dtype that is given, if one is, or a tensor's; MindSpore places by its context."""
    given = [*args, *kwargs.values()]
    given = [part.dtype if isinstance(part, ms.Tensor) else part for part in given]
    dtypes = [part for part in given if part in FLOATS]
    return floats_to(cell, dtypes[0]) if dtypes else cell
