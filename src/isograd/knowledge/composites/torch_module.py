"""torch.nn.Module's ways on MindSpore's Cell: its methods, training from the start."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253

#: Statistics that MindSpore keeps as Parameters and torch as buffers.
STATISTICS = frozenset(
    "running_mean running_var moving_mean moving_variance num_batches_tracked".split()
)


def is_statistic(name: str, parameter: Any) -> bool:
    """Whether a Parameter of a norm is a buffer in torch."""
    return name in STATISTICS and not parameter.requires_grad


class Module(nn.Cell):  # type: ignore[misc]
    """A cell with torch.nn.Module's methods, which starts in training as in torch.

    `forward` is `construct`.  Running statistics are Parameters that do not learn, and count as
    buffers here.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        nn.Cell.__init__(self)
        object.__setattr__(self, "_place", "")
        self.add_flags(training=True)

    def __setattr__(self, name: str, value: Any) -> None:
        buffers = self.__dict__.get("_buffers", {})
        if isinstance(value, nn.Cell):
            buffers.pop(name, None)
            nn.Cell.__setattr__(self, name, value)
            value.update_parameters_name(f"{self._place}{name}.")
        elif isinstance(value, ms.Parameter):
            buffers.pop(name, None)
            given = value.name
            nn.Cell.__setattr__(self, name, value)
            if value.name != given:
                value.name = f"{self._place}{name}"
        elif name in buffers and isinstance(value, ms.Tensor):
            buffers[name] = value
        elif isinstance(value, (list, tuple)) and not isinstance(value, ms.ParameterTuple):
            object.__setattr__(self, name, value)
        else:
            nn.Cell.__setattr__(self, name, value)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name the parameters by their path, and remember the path for cells that come later."""
        for path, cell in self.cells_and_names():
            if isinstance(cell, Module):
                object.__setattr__(cell, "_place", f"{prefix}{path}." if path else prefix)
        super().update_parameters_name(prefix, recurse)

    # ---- children

    @property
    def _modules(self) -> dict[str, Any]:
        children: dict[str, Any] = self._cells
        return children

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The cells right below this one with their names, each once."""
        seen = set()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                yield name, cell

    def children(self) -> Iterator[Any]:
        """The cells right below this one."""
        return (cell for _, cell in self.named_children())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This cell and all below it with their paths."""
        return named_modules(self, memo, prefix, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This cell and all below it, each once."""
        return (cell for _, cell in self.named_modules())

    def add_module(self, name: str, module: Any) -> None:
        """A child by its name."""
        self.insert_child_to_cell(name, module)
        if module is not None:
            module.update_parameters_name(f"{self._place}{name}.")

    def register_module(self, name: str, module: Any) -> None:
        """A child by its name."""
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Any:
        """The cell at a path."""
        cell = self
        for name in filter(None, target.split(".")):
            cell = cell._cells[name]
        return cell

    # ---- parameters and buffers

    @property
    def _parameters(self) -> dict[str, Any]:
        return {n: p for n, p in self._params.items() if p is None or not is_statistic(n, p)}

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What torch calls parameters, with their paths."""
        return named_parameters(self, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """What torch calls parameters."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Buffers and running statistics with their paths."""
        return named_buffers(self, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Buffers and running statistics."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """A tensor that does not learn; a name that is used as an attribute is an error."""
        super().register_buffer(name, tensor, persistent)

    def register_parameter(self, name: str, param: Any) -> None:
        """A Parameter, or None in its place."""
        self.insert_param_to_cell(name, param)

    def get_parameter(self, target: str) -> Any:
        """The Parameter at a path."""
        path, _, name = target.rpartition(".")
        return self.get_submodule(path)._params[name]

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and lasting buffers by path, parameters first in each cell."""
        return super().state_dict(
            *args, destination=destination, prefix=prefix, keep_vars=keep_vars
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy values by path; norms here do not count their batches, so that may be left over."""
        own = {f"{path}.num_batches_tracked".lstrip(".") for path, _ in self.named_modules()}
        own -= set(self.state_dict())
        values = OrderedDict((k, v) for k, v in state_dict.items() if k not in own)
        return super().load_state_dict(values, strict)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Whether the parameters learn."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing: gradients are results in MindSpore, and not kept."""

    # ---- modes

    def train(self, mode: bool = True) -> Module:
        """Training or inference, for this cell and all below it."""
        object.__setattr__(self, "_phase", "train" if mode else "predict")
        self.add_flags(training=mode)
        for cell in self.children():
            (cell.train if isinstance(cell, Module) else cell.set_train)(mode)
        return self

    def eval(self) -> Module:
        """Inference."""
        return self.train(False)

    def set_train(self, mode: bool = True) -> Module:
        """MindSpore's name of `train`."""
        return self.train(mode)

    # ---- dtypes; MindSpore places by its context

    def _floats_to(self, dtype: Any) -> Module:
        for cell in self.modules():
            for parameter in cell._params.values():
                if parameter is not None and parameter.dtype in _FLOATS:
                    parameter.set_dtype(dtype)
            for name, buffer in cell._buffers.items():
                if buffer is not None and buffer.dtype in _FLOATS:
                    cell._buffers[name] = buffer.astype(dtype)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """To a dtype, where one is given (or that of a tensor)."""
        given = [*args, *kwargs.values()]
        given = [part.dtype if isinstance(part, ms.Tensor) else part for part in given]
        dtypes = [part for part in given if part in _FLOATS]
        return self._floats_to(dtypes[0]) if dtypes else self

    def half(self) -> Module:
        """To float16."""
        return self._floats_to(ms.float16)

    def bfloat16(self) -> Module:
        """To bfloat16."""
        return self._floats_to(ms.bfloat16)

    def float(self) -> Module:
        """To float32."""
        return self._floats_to(ms.float32)

    def double(self) -> Module:
        """To float64."""
        return self._floats_to(ms.float64)

    def type(self, dst_type: Any) -> Module:
        """To a dtype."""
        return self._floats_to(dst_type)

    def cuda(self, device: Any = None) -> Module:
        """Itself: MindSpore places by its context."""
        return self

    def cpu(self) -> Module:
        """Itself: MindSpore places by its context."""
        return self

    # ---- texts and hooks

    def extra_repr(self) -> str:
        """What stands in the brackets of this cell's text."""
        return ""

    def extend_repr(self) -> str:
        """MindSpore's name of `extra_repr`."""
        return self.extra_repr()

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """A hook of gradients; runs inside mindspore.grad."""
        return self.register_backward_hook(hook)


_FLOATS = (ms.float16, ms.bfloat16, ms.float32, ms.float64)


def named_modules(
    cell: Any, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """Any cell and all below it with their paths."""
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


def named_parameters(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """What torch calls parameters, of any cell."""
    found = (
        (path, name, parameter)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, parameter in part._params.items()
        if parameter is not None and not is_statistic(name, parameter)
    )
    return _once(found, remove_duplicate)


def named_buffers(
    cell: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Any]]:
    """Buffers and running statistics of any cell."""
    found = (
        (path, name, value)
        for path, part in _parts(cell, prefix, recurse, remove_duplicate)
        for name, value in (*part._params.items(), *part._buffers.items())
        if value is not None and (name in part._buffers or is_statistic(name, value))
    )
    return _once(found, remove_duplicate)


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
