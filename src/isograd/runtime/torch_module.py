"""torch.nn.Module's ways on MindSpore's Cell: its methods, training from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253

from isograd.runtime import module_functions, state_dicts


class _OwnParameters(MutableMapping[str, Any]):
    """`module._parameters`: what is put into it, or taken out of it, is so of the module."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def _held(self) -> dict[str, Any]:
        held, wanted = self._module._params.items(), module_functions.is_statistic
        return {name: p for name, p in held if p is None or not wanted(name, p)}

    def __getitem__(self, name: str) -> Any:
        return self._held()[name]

    def __setitem__(self, name: str, parameter: Any) -> None:
        self._module.__dict__.pop(name, None)
        self._module.insert_param_to_cell(name, parameter)

    def __delitem__(self, name: str) -> None:
        del self._module._params[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())


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
            value.update_parameters_name(module_functions.legal_name(f"{self._place}{name}."))
        elif isinstance(value, ms.Parameter):
            buffers.pop(name, None)
            given = value.name
            nn.Cell.__setattr__(self, name, value)
            if value.name != given:
                value.name = module_functions.legal_name(f"{self._place}{name}")
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
        super().update_parameters_name(module_functions.legal_name(prefix), recurse)

    # ---- children

    @property
    def _modules(self) -> dict[str, Any]:
        found: dict[str, Any] = self._cells
        return found

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The cells right below this one with their names, each once."""
        return module_functions.named_children(self)

    def children(self) -> Iterator[Any]:
        """The cells right below this one."""
        return module_functions.children(self)

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This cell and all below it with their paths."""
        return module_functions.named_modules(self, memo, prefix, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This cell and all below it, each once."""
        return module_functions.modules(self)

    def add_module(self, name: str, module: Any) -> None:
        """A child by its name."""
        module_functions.add_module(self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """A child by its name."""
        module_functions.add_module(self, name, module)

    def get_submodule(self, target: str) -> Any:
        """The cell at a path."""
        return module_functions.get_submodule(self, target)

    # ---- parameters and buffers

    @property
    def _parameters(self) -> MutableMapping[str, Any]:
        return _OwnParameters(self)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What torch calls parameters, with their paths."""
        return module_functions.all_named_parameters(self, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """What torch calls parameters."""
        return module_functions.all_parameters(self, recurse)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Buffers and running statistics with their paths."""
        return module_functions.named_buffers(self, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Buffers and running statistics."""
        return module_functions.buffers(self, recurse)

    def register_parameter(self, name: str, param: Any) -> None:
        """A Parameter, or None in its place."""
        self.insert_param_to_cell(name, param)

    def get_parameter(self, target: str) -> Any:
        """The Parameter at a path."""
        return module_functions.get_parameter(self, target)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy values by path; the missing and the unexpected ones."""
        return state_dicts.load_values(self, state_dict, strict)

    def _load_from_state_dict(self, *given: Any) -> None:
        state_dicts.load_own(self, *given)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Whether the parameters learn."""
        module_functions.requires_grad_(self, requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients that `backward` left in the parameters."""
        for parameter in self.get_parameters():
            if getattr(parameter, "grad", None) is not None:
                parameter.grad = None if set_to_none else ms.ops.zeros_like(parameter.grad)

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

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """To a dtype, where one is given (or that of a tensor)."""
        module_functions.module_to(self, *args, **kwargs)
        return self

    def half(self) -> Module:
        """To float16."""
        return self.to(ms.float16)

    def bfloat16(self) -> Module:
        """To bfloat16."""
        return self.to(ms.bfloat16)

    def float(self) -> Module:
        """To float32."""
        return self.to(ms.float32)

    def double(self) -> Module:
        """To float64."""
        return self.to(ms.float64)

    def type(self, dst_type: Any) -> Module:
        """To a dtype."""
        return self.to(dst_type)

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
        return module_functions.register_full_backward_hook(self, hook, prepend)


#: What torch's layers call what MindSpore's hold.
_NAMES = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "w": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "in_channels": "in_features",
    "out_channels": "out_features",
    "vocab_size": "num_embeddings",
    "embedding_size": "embedding_dim",
    "group": "groups",
    "epsilon": "eps",
}


class NamedLayer(Module):
    """A layer of torch's shape that answers to the names of MindSpore's layer as well.

    A port that holds both reads `norm.gamma` of either.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in _NAMES:
                raise
            return getattr(self, _NAMES[name])
