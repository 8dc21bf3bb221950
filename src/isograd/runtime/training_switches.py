"""What of torch's training directs its own machinery, and changes no value in a port."""

from __future__ import annotations

import contextlib
import enum
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def without_effect(*_: Any, **__: Any) -> contextlib.AbstractContextManager[None]:
    """A switch of torch's machinery, for a block or from here on: nothing is to be switched."""
    return contextlib.nullcontext()


def custom_fwd(fwd: Any = None, *, device_type: Any = None, cast_inputs: Any = None) -> Any:
    """The forward method itself, or a decorator: torch's casts inside of autocast alone."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: Any = None) -> Any:
    """The backward method itself, or a decorator: torch's restores the mode of autocast."""
    return (lambda function: function) if bwd is None else bwd


class CheckpointPolicy(enum.Enum):
    """What torch's selective checkpoints keep; here everything is kept."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy of torch's selective checkpoints is given; here none is asked."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(*_: Any, **__: Any) -> tuple[Any, Any]:
    """Contexts of the forward pass and of recomputation, which does not happen here."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The device whose random state torch's checkpoints keep: a name here."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Keep a name."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """The name that is kept."""
        return DefaultDeviceType._kind


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """The arguments among these that make tensors; TypeError for others and for repeated ones."""
    simple = ("device", "dtype", "memory_format")
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    if unexpected := given.keys() - set(simple):
        raise TypeError(f"unexpected kwargs {unexpected}")
    if repeated := given.keys() & found.keys():
        raise TypeError(f"{repeated} specified twice, in **kwargs and in factory_kwargs")
    return {**found, **{name: given[name] for name in simple if name in given}}


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer as it is made; torch's has values that are not set."""
    kwargs.pop("device", None)
    return module_cls(*args, **kwargs)


def type_before_parametrizations(module: Any) -> Any:
    """The class of a module, or that from which parametrizations made its own."""
    return getattr(module, "_derived_from", type(module))


def parallel_apply(
    modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Each module's result of its own inputs, one after the other."""
    named = kwargs_tup or [{}] * len(modules)
    rows = [given if isinstance(given, (tuple, list)) else (given,) for given in inputs]
    return [
        module(*given, **more) for module, given, more in zip(modules, rows, named, strict=True)
    ]


def scatter_to_devices(inputs: Any, target_gpus: Any, dim: int = 0) -> list[Any]:
    """A part of all tensors for each device; what is no tensor goes to each."""
    count = len(target_gpus)
    if isinstance(inputs, ms.Tensor):
        return list(ops.chunk(inputs, count, dim))
    if isinstance(inputs, dict):
        rows = scatter_to_devices(list(inputs.values()), target_gpus, dim) if inputs else [[]]
        return [type(inputs)(zip(inputs, row, strict=True)) for row in rows]
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = [scatter_to_devices(part, target_gpus, dim) for part in inputs]
        rows = [list(row) for row in zip(*parts, strict=False)]  # as many as the shortest has
        if hasattr(inputs, "_fields"):
            return [type(inputs)(*row) for row in rows]
        return [type(inputs)(row) for row in rows]
    return [inputs] * count


def gather_from_devices(outputs: Any, target_device: Any = None, dim: int = 0) -> Any:
    """The parts of scatter_to_devices in one again; numbers become a vector."""
    first = outputs[0]
    if isinstance(first, ms.Tensor):
        parts = [part.reshape(1) if part.ndim == 0 else part for part in outputs]
        return ops.cat(parts, dim)
    if isinstance(first, dict):
        return {key: gather_from_devices([o[key] for o in outputs], None, dim) for key in first}
    if first is None:
        return None
    rows = [gather_from_devices(row, None, dim) for row in zip(*outputs, strict=True)]
    return type(first)(*rows) if hasattr(first, "_fields") else type(first)(rows)


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, *_: Any, **__: Any
) -> Any:
    """One of two functions, by an argument of the call."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    return chosen
