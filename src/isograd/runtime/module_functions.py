"""What torch.nn.Module's methods do, for any cell: MindSpore's own and torch-shaped ones."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

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
    found = {id(child): (name, child) for name, child in reversed(_modules_of(cell).items())}
    return iter(list(found.values())[::-1])


def _modules_of(cell: Any) -> dict[str, Any]:
    """The cells right below one by their names; optimizers are no modules in torch."""
    return {
        name: child
        for name, child in cell._cells.items()
        if child is not None and not hasattr(child, "param_groups")
    }


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
    for name, child in _modules_of(cell).items():
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
    """What torch calls parameters, with their paths; or what the cell's class calls so."""
    own = _own_method(cell, "named_parameters")
    if own is not None:
        default = {"prefix": "", "recurse": True, "remove_duplicate": True}
        given = {"prefix": prefix, "recurse": recurse, "remove_duplicate": remove_duplicate}
        return own(**{name: value for name, value in given.items() if value != default[name]})  # type: ignore[no-any-return]
    return all_named_parameters(_cell_of(cell), prefix, recurse, remove_duplicate)


def all_named_parameters(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """What torch's own module calls parameters, with their paths."""
    found = (
        (path, torchs_name(part, name), parameter)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, parameter in in_torchs_order(part)
        if parameter is not None and not is_statistic(name, parameter)
        if not is_constant(part, name)
    )
    return _once(found, remove_duplicate)


def in_torchs_order(cell: Any) -> list[tuple[str, Any]]:
    """A cell's own Parameters: layer by layer, direction by direction of a recurrent one.

    MindSpore's hold all weights of one kind, then all of the next.
    """
    own = list(cell._params.items())
    if isinstance(cell, (nn.RNN, nn.GRU, nn.LSTM)):
        own.sort(key=lambda pair: _place_in_layers(pair[0]))  # which leaves the kinds in order
    return own


def _place_in_layers(name: str) -> tuple[int, bool]:
    found = re.search(r"_l(\d+)(_reverse)?$", name)
    return (int(found[1]), found[2] is not None) if found else (-1, False)


def torchs_name(cell: Any, name: str) -> str:
    """What torch calls a Parameter of one of MindSpore's layers."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm)
    if not isinstance(cell, (*norms, nn.Embedding, nn.PReLU)):
        return name
    return TWINS.get(name, (name,))[0] if name in _NATIVE_NAMES else name


def parameters(cell: Any, recurse: bool = True) -> Iterator[Any]:
    """What torch calls parameters, or what the cell's class calls so."""
    own = _own_method(cell, "parameters")
    if own is not None:
        return own() if recurse else own(recurse=False)  # type: ignore[no-any-return]
    return all_parameters(_cell_of(cell), recurse)


def all_parameters(cell: Any, recurse: bool = True) -> Iterator[Any]:
    """What torch's own module calls parameters, by the names that the cell's class gives."""
    return (parameter for _, parameter in named_parameters(cell, recurse=recurse))


def _own_method(cell: Any, name: str) -> Any:
    """A method of torch's name that a cell's class has, or what is no cell; None: a cell's own.

    cell: also `super()` in such a method, behind which another class may have it.
    """
    if isinstance(cell, super):
        return getattr(cell, name, None)
    is_torchs = isinstance(cell, nn.Cell) and not hasattr(type(cell), name)
    return None if is_torchs else getattr(cell, name)


def _cell_of(cell: Any) -> Any:
    return cell.__self__ if isinstance(cell, super) else cell  # type: ignore[attr-defined]


def named_buffers(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """Buffers and running statistics with their paths."""
    if not isinstance(cell, nn.Cell):
        return cell.named_buffers(prefix, recurse)  # type: ignore[no-any-return]  # has torch's method
    found = (
        (path, torchs_name(part, name), value)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, value in (*part._params.items(), *part._buffers.items())
        if value is not None and (name in part._buffers or is_statistic(name, value))
    )
    return _once(found, remove_duplicate)


def buffers(cell: Any, recurse: bool = True) -> Iterator[Any]:
    """Buffers and running statistics."""
    if not isinstance(cell, nn.Cell):
        return cell.buffers()  # type: ignore[no-any-return]  # has torch's method
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
    if not isinstance(cell, nn.Cell):
        return cell.get_submodule(target)  # anything with torch's method
    for name in filter(None, target.split(".")):
        if name not in cell._cells:
            raise AttributeError(f"{type(cell).__name__} has no attribute `{name}`")
        cell = cell._cells[name]
    return cell


def get_parameter(cell: Any, target: str) -> Any:
    """The Parameter at a path.  Raises AttributeError where there is none."""
    if not isinstance(cell, nn.Cell):
        return cell.get_parameter(target)  # anything with torch's method
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
    if not isinstance(cell, nn.Cell):
        cell.add_module(name, module)  # anything with torch's method
        return
    cell.insert_child_to_cell(name, module)
    if isinstance(cell, nn.SequentialCell):
        cell.cell_list = [child for child in cell._cells.values() if child is not None]
    if module is not None:
        module.update_parameters_name(legal_name(f"{getattr(cell, '_place', '')}{name}."))


def set_child(cell: Any, name: str, value: Any) -> None:
    """`cell.name = value`: a SequentialCell runs it if it is a cell, others have an attribute."""
    if isinstance(cell, nn.SequentialCell) and (isinstance(value, nn.Cell) or name in cell._cells):
        add_module(cell, name, value)
    else:
        setattr(cell, name, value)


def requires_grad_(cell: Any, requires_grad: bool = True) -> Any:
    """Whether the parameters learn; the cell itself."""
    if not isinstance(cell, nn.Cell):
        return cell.requires_grad_(requires_grad)  # a Parameter, or anything with torch's method
    for parameter in parameters(cell):
        parameter.requires_grad = requires_grad
    return cell


def register_full_backward_hook(cell: Any, hook: Any, prepend: bool = False) -> Any:
    """A hook of gradients, behind or before those that a cell has; its handle."""
    if not isinstance(cell, nn.Cell):
        return cell.register_full_backward_hook(hook, prepend)  # anything with torch's method
    handle = cell.register_backward_hook(hook)
    if prepend:
        cell._backward_hook.move_to_end(handle.handle_id, last=False)
    return handle


def flatten_parameters(module: Any) -> None:
    """A module's own method of this name; MindSpore's layers have none, and need none."""
    if not isinstance(module, nn.Cell) or hasattr(module, "flatten_parameters"):
        module.flatten_parameters()


def states_of_lstm(states: Any) -> Any:
    """The states that MindSpore's LSTM takes: a tuple of what torch's takes in a list, too."""
    return tuple(states) if isinstance(states, list) else states


_NATIVE_NAMES = frozenset("gamma beta moving_mean moving_variance embedding_table w".split())
#: What torch and MindSpore call the same parameter of a layer.
TWINS = {
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


def asked_by_users(find: Any) -> Any:
    """A class's `__getattr__`, which MindSpore's own questions about names do not reach.

    A cell asks whether it has a `bprop`, and whether the name of a child is free, before the child
    exists to which the class passes such questions on; a module of torch does not ask.
    """

    @functools.wraps(find)
    def found(self: Any, name: str) -> Any:
        if sys._getframe(1).f_globals.get("__name__") == nn.Cell.__module__:
            return nn.Cell.__getattr__(self, name)
        return find(self, name)

    return found
